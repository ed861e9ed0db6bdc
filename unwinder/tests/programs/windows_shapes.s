# Frames that hand-written code and other compilers make: chained parts, registers saved by moves, frame pointers in other
# registers and with an offset, every form of an epilogue's end, unwind information of version 2, interrupts' frames.
    .text

    .globl shapes
    .seh_proc shapes
shapes:
    pushq %rbx
    .seh_pushreg %rbx
    pushq %r12
    .seh_pushreg %r12
    subq $40, %rsp
    .seh_stackalloc 40
    .seh_endprologue
    movq %rcx, %rbx
    movq $77, %r12
    call saved_by_moves
    call frame_in_r13
    call frame_with_offset
    call ends_by_rep_ret
    call ends_by_ret_n
    call ends_by_import
    call ends_by_register
    call ends_by_itself
    call large_release
    call chained
    call coded_epilogues
    call interrupted
    movq %rbx, %rax
    addq $40, %rsp
    popq %r12
    popq %rbx
    ret
    .seh_endproc

# The probe of the stack, as GCC and LLVM call it. libgcc's own pushes, but has no unwind information.
    .globl ___chkstk_ms
    .globl __chkstk
    .seh_proc ___chkstk_ms
___chkstk_ms:
__chkstk:
    pushq %rcx
    .seh_pushreg %rcx
    pushq %rax
    .seh_pushreg %rax
    .seh_endprologue
    leaq 24(%rsp), %rcx
1:  cmpq $0x1000, %rax
    jb 2f
    subq $0x1000, %rcx
    orq $0, (%rcx)
    subq $0x1000, %rax
    jmp 1b
2:  popq %rax
    popq %rcx
    ret
    .seh_endproc

plain:
    leaq 1(%rcx), %rax
    ret

    .seh_proc saved_by_moves
saved_by_moves:
    subq $0x88, %rsp
    .seh_stackalloc 0x88
    movq %rsi, 0x40(%rsp)
    .seh_savereg %rsi, 0x40
    movq %r14, 0x80(%rsp)
    .seh_savereg %r14, 0x80
    movaps %xmm6, 0x50(%rsp)
    .seh_savexmm %xmm6, 0x50
    .seh_endprologue
    movq $1, %rsi
    movq $2, %r14
    call plain
    movaps 0x50(%rsp), %xmm6
    movq 0x80(%rsp), %r14
    movq 0x40(%rsp), %rsi
    addq $0x88, %rsp
    ret
    .seh_endproc

    .seh_proc frame_in_r13
frame_in_r13:
    pushq %r13
    .seh_pushreg %r13
    pushq %rdi
    .seh_pushreg %rdi
    subq $72, %rsp
    .seh_stackalloc 72
    movq %rsp, %r13
    .seh_setframe %r13, 0
    movq %rbp, 40(%rsp)
    .seh_savereg %rbp, 40
    .seh_endprologue
    subq $64, %rsp
    movq $3, %rbp
    movq $4, %rdi
    call plain
    subq $32, %rsp
    call saved_by_moves
    movq 40(%r13), %rbp
    leaq 72(%r13), %rsp
    popq %rdi
    popq %r13
    ret
    .seh_endproc

    .seh_proc frame_with_offset
frame_with_offset:
    pushq %rbp
    .seh_pushreg %rbp
    pushq %rbx
    .seh_pushreg %rbx
    subq $0x208, %rsp
    .seh_stackalloc 0x208
    leaq 0x80(%rsp), %rbp
    .seh_setframe %rbp, 0x80
    .seh_endprologue
    subq $128, %rsp
    movq $9, %rbx
    call frame_in_r13
    leaq 0x188(%rbp), %rsp
    popq %rbx
    popq %rbp
    ret
    .seh_endproc

    .seh_proc ends_by_rep_ret
ends_by_rep_ret:
    pushq %r15
    .seh_pushreg %r15
    .seh_endprologue
    xorl %r15d, %r15d
    popq %r15
    rep ret
    .seh_endproc

    .seh_proc ends_by_ret_n
ends_by_ret_n:
    pushq %r14
    .seh_pushreg %r14
    subq $32, %rsp
    .seh_stackalloc 32
    .seh_endprologue
    movl $0xc35b, %eax
    call plain
    addq $32, %rsp
    popq %r14
    ret $0
    .seh_endproc

    .seh_proc ends_by_import
ends_by_import:
    pushq %rsi
    .seh_pushreg %rsi
    subq $32, %rsp
    .seh_stackalloc 32
    .seh_endprologue
    xorl %esi, %esi
    jmp 1f
    int3
1:  addq $32, %rsp
    popq %rsi
    jmp *plain_pointer(%rip)
    .seh_endproc

    .seh_proc ends_by_register
ends_by_register:
    pushq %rdi
    .seh_pushreg %rdi
    subq $32, %rsp
    .seh_stackalloc 32
    .seh_endprologue
    leaq plain(%rip), %rax
    xorl %edi, %edi
    addq $32, %rsp
    popq %rdi
    .byte 0x48, 0xff, 0xe0          # rex.W jmp *%rax
    .seh_endproc

# Jumps to its own beginning once its frame is gone.
    .seh_proc ends_by_itself
ends_by_itself:
    pushq %rbx
    .seh_pushreg %rbx
    subq $32, %rsp
    .seh_stackalloc 32
    .seh_endprologue
    movq %rcx, %rbx
    call plain
    shrq $1, %rcx
    jz 1f
    addq $32, %rsp
    popq %rbx
    jmp ends_by_itself
1:  addq $32, %rsp
    popq %rbx
    ret
    .seh_endproc

    .seh_proc large_release
large_release:
    pushq %rbp
    .seh_pushreg %rbp
    subq $0x800, %rsp
    .seh_stackalloc 0x800
    movq %r12, 0x7f8(%rsp)
    .seh_savereg %r12, 0x7f8
    .seh_endprologue
    movq $5, %r12
    movq $6, %rbp
    call plain
    andl $0xff, %eax
    movq 0x7f8(%rsp), %r12
    addq $0x800, %rsp
    popq %rbp
    ret
    .seh_endproc

# What the assembler has no directives for has its entries in .pdata and its unwind information written out.
    .macro function begin, end, information
    .section .pdata
    .rva \begin, \end, \information
    .text
    .endm

# The primary function pushes; a part saves two more registers by moves, and calls; a part of it, elsewhere, is described by
# an indirect entry.
chained:
    pushq %rbp
1:  pushq %rsi
2:  subq $72, %rsp
3:  movq $11, %rsi
    movq $12, %rbp
    testq %rcx, %rcx
chained_part:
    movq %r15, 32(%rsp)
4:  movq %rdi, 40(%rsp)
5:  movq $13, %r15
    movq $14, %rdi
    call plain
    jmp chained_far
chained_back:
    movq 40(%rsp), %rdi
    movq 32(%rsp), %r15
chained_rest:
    jmp 6f
6:  addq $72, %rsp
    popq %rsi
    popq %rbp
    ret
chained_end:

between:
    ret

chained_far:
    call plain
    jmp chained_back
chained_far_end:
    function chained, chained_part, chained_information
    function chained_part, chained_rest, chained_part_information
    function chained_rest, chained_end, chained_rest_information
    function chained_far, chained_far_end, chained_part_entry + 1
    .section .xdata
    .balign 4
chained_information:
    .byte 1, 3b - chained, 3, 0
    .byte 3b - chained, 0x82, 2b - chained, 0x60, 1b - chained, 0x50, 0, 0
chained_part_information:
    .byte 1 | 4 << 3, 5b - chained_part, 4, 0
    .byte 5b - chained_part, 0x74
    .short 5
    .byte 4b - chained_part, 0xf4
    .short 4
    .rva chained, chained_part, chained_information
chained_rest_information:
    .byte 1 | 4 << 3, 0, 0, 0
    .rva chained, chained_part, chained_information
chained_part_entry:
    .rva chained_part, chained_rest, chained_part_information
    .text

# Version 2: one epilogue at the end, one before. Each begins behind the stack's release.
coded_epilogues:
    pushq %rbx
1:  pushq %r13
2:  pushq %r14
3:  subq $32, %rsp
4:  xorl %ebx, %ebx
    xorl %r13d, %r13d
    xorl %r14d, %r14d
    call plain
    testq %rax, %rax
    jz 7f
    addq $32, %rsp
5:  popq %r14
    popq %r13
    popq %rbx
    jmp plain
7:  call plain
    addq $32, %rsp
6:  popq %r14
    popq %r13
    popq %rbx
    ret
coded_epilogues_end:
    function coded_epilogues, coded_epilogues_end, coded_epilogues_information
    .section .xdata
    .balign 4
coded_epilogues_information:
    .byte 2, 4b - coded_epilogues, 6, 0
    .byte coded_epilogues_end - 6b, 0x16
    .byte coded_epilogues_end - 5b, 0x06
    .byte 4b - coded_epilogues, 0x32, 3b - coded_epilogues, 0xe0, 2b - coded_epilogues, 0xd0, 1b - coded_epilogues, 0x30
    .text

# Is interrupted twice: at int3, what runs the image pushes what the processor would, with an error code if rdx is not 0, and
# goes on at rax.
    .seh_proc interrupted
interrupted:
    pushq %rbx
    .seh_pushreg %rbx
    subq $40, %rsp
    .seh_stackalloc 40
    .seh_endprologue
    movl $6, %ebx
    leaq on_interrupt(%rip), %rax
    xorl %edx, %edx
    int3
    movl $7, %ebx
    leaq on_fault(%rip), %rax
    movl $1, %edx
    int3
    addq $40, %rsp
    popq %rbx
    ret
    .seh_endproc

on_interrupt:
    pushq %rbx
    subq $32, %rsp
    movl $1, %ebx
    call plain
    addq $32, %rsp
    popq %rbx
    iretq
on_interrupt_end:

on_fault:
    subq $40, %rsp
    movq %rbx, 32(%rsp)
    movl $1, %ebx
    call plain
    movq 32(%rsp), %rbx
    addq $48, %rsp
    iretq
on_fault_end:
    function on_interrupt, on_interrupt_end, on_interrupt_information
    function on_fault, on_fault_end, on_fault_information
    .section .xdata
    .balign 4
on_interrupt_information:
    .byte 1, 5, 3, 0, 5, 0x32, 1, 0x30, 0, 0x0a, 0, 0
on_fault_information:
    .byte 1, 9, 4, 0, 9, 0x34, 4, 0, 4, 0x42, 0, 0x1a

    .data
plain_pointer:
    .quad plain
    .globl _fltused
_fltused:
    .long 0
