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

outermost:
	.cfi_startproc
	.cfi_undefined %eip
	call	copy
in_outermost:
	nop
	.cfi_endproc
