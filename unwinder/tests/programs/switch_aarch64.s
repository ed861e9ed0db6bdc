// Code that loads the registers of elsewhere, the return address first, with rules as glibc has them for `__longjmp`; and functions
// that it may go to.
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
	ldr	x30, [sp], #32
	.cfi_def_cfa_offset 0
	.cfi_restore x30
	ret
	.cfi_endproc

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
	nop
	.cfi_endproc
