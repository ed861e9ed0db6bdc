// Code that loads the registers of elsewhere, the return address first, with rules as glibc has them for `__longjmp`; and functions
// that it may go to. And code that goes on where an exception is caught, with rules as libgcc has them.
	.text
leave:
	.cfi_startproc
	.cfi_def_cfa x0, 0
	.cfi_offset x29, 80
	.cfi_offset x30, 88
	ldp	x29, x4, [x0, #80]
	mov	x30, x4
between:
	ldr	x2, [x0, #104]
	mov	sp, x2
	br	x30
	.cfi_endproc

by_sp:
	.cfi_startproc
	str	x30, [sp, #-32]!
	.cfi_def_cfa_offset 32
	.cfi_offset x30, -32
	bl	leave
in_by_sp:
	.cfi_remember_state
	ldr	x30, [sp], #32
	.cfi_def_cfa_offset 0
	.cfi_restore x30
	ret
	.cfi_restore_state
catch:
	bl	leave
	b	in_by_sp
	.cfi_endproc

resume:
	.cfi_startproc
	sub	sp, sp, #64
	.cfi_def_cfa_offset 64
	stp	x29, x30, [sp]
	.cfi_offset x29, -64
	.cfi_offset x30, -56
	stp	x0, x1, [sp, #16]
	.cfi_offset x0, -48
	.cfi_offset x1, -40
in_resume:
	ldp	x29, x30, [sp]
	ldp	x0, x1, [sp, #16]
	add	sp, sp, #64
	.cfi_def_cfa_offset 0
	.cfi_restore x29
	.cfi_restore x30
	.cfi_restore x0
	.cfi_restore x1
	add	sp, sp, x4
	ret
	.cfi_endproc

thrower:
	.cfi_startproc
	str	x30, [sp, #-32]!
	.cfi_def_cfa_offset 32
	.cfi_offset x30, -32
	bl	resume
in_thrower:
	nop
	.cfi_endproc

// Jumps on to what goes on where an exception is caught, as the last thing that it does.
tailer:
	.cfi_startproc
	str	x19, [sp, #-16]!
	.cfi_def_cfa_offset 16
	ldr	x19, [sp], #16
	.cfi_def_cfa_offset 0
	b	resume
	.cfi_endproc

visitor:
	.cfi_startproc
	str	x30, [sp, #-32]!
	.cfi_def_cfa_offset 32
	.cfi_offset x30, -32
	bl	tailer
in_visitor:
	nop
	.cfi_endproc

// As a linkage table has it.
to_visitor:
	adrp	x16, leave
	ldr	x17, [x16, #8]
	add	x16, x16, #8
	br	x17

by_x29:
	.cfi_startproc
	stp	x29, x30, [sp, #-32]!
	.cfi_def_cfa_offset 32
	.cfi_offset x29, -32
	.cfi_offset x30, -24
	mov	x29, sp
	.cfi_def_cfa_register x29
	bl	leave
in_by_x29:
	ldp	x29, x30, [sp], #32
	.cfi_def_cfa sp, 0
	.cfi_restore x29
	.cfi_restore x30
	ret
	.cfi_endproc

outermost:
	.cfi_startproc
	.cfi_undefined x30
	bl	by_sp
behind_by_sp:
	bl	by_x29
behind_by_x29:
	blr	x3
behind_any:
	bl	thrower
behind_thrower:
	bl	visitor
behind_visitor:
	bl	to_visitor
behind_stub:
	nop
	.cfi_endproc
