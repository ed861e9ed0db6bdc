# Functions that push what their rules don't count, as glibc's `memcpy` and `swapcontext` for i386 do.
	.text
copy:
	.cfi_startproc
	push	%eax
pushed:
	cmp	$3, %ecx
	rep movsb
	pop	%eax
	mov	%eax, %edi
	ret
	.cfi_endproc

# Where it goes on to is not known.
leave:
	.cfi_startproc
	push	%ebx
left:
	mov	48(%eax), %esp
	jmp	*%ecx
	.cfi_endproc

# The same as the first, if what is counted is below.
below:
	.cfi_startproc
	.cfi_def_cfa_offset -4
counted_below:
	pop	%ebx
	ret
	.cfi_endproc

# Has what it needs on the stack, but for what an old return address is on: nothing returns from there to the code behind it.
big:
	.cfi_startproc
	.cfi_def_cfa_offset 0x2004
in_big:
	test	%eax, %eax
	je	1f
	add	$0x2000, %esp
	ret
1:	call	outermost
	add	$12, %esp
	ret
	.cfi_endproc

inner:
	.cfi_startproc
	sub	$12, %esp
	.cfi_def_cfa_offset 16
	call	copy
in_inner:
	add	$12, %esp
	.cfi_def_cfa_offset 4
	ret
	.cfi_endproc

# Where its caller is says a register that a frame keeps.
by_esi:
	.cfi_startproc
	.cfi_def_cfa %esi, 8
	call	copy
in_by_esi:
	nop
	.cfi_endproc

outermost:
	.cfi_startproc
	.cfi_undefined %eip
	call	copy
in_outermost:
	nop
	.cfi_endproc
