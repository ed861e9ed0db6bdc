# A return address in code without rules, behind an instruction whose last byte is that of a return.
	.text
held:
	.cfi_startproc
	xor	%eax, %eax
	ret
	.cfi_endproc

	mov	$0xc3000000, %eax
behind_immediate:
	jmp	*%rax
