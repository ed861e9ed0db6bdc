// Frames that clang makes of no C: every unwind code that a prologue of hand-written code may have.
    .text

    .globl __chkstk
__chkstk:
    ret

    .globl shapes
    .seh_proc shapes
shapes:
    stp x19, x20, [sp, #-32]!
    .seh_save_r19r20_x 32
    str x30, [sp, #16]
    .seh_save_reg x30, 16
    .seh_endprologue
    mov x19, #7
    mov x20, #8
    bl chained_record
    bl all_pairs
    bl any_register
    bl link_pair
    bl pointer_inside
    bl large
    bl single
    bl two_epilogues
    bl split
    bl interrupted
    .seh_startepilogue
    ldr x30, [sp, #16]
    .seh_save_reg x30, 16
    ldp x19, x20, [sp], #32
    .seh_save_r19r20_x 32
    .seh_endepilogue
    ret
    .seh_endproc

plain:
    add x0, x0, #1
    ret

    .seh_proc chained_record
chained_record:
    stp x29, x30, [sp, #-48]!
    .seh_save_fplr_x 48
    mov x29, sp
    .seh_set_fp
    stp x21, x22, [sp, #16]
    .seh_save_regp x21, 16
    .seh_endprologue
    mov x21, #1
    mov x22, #2
    sub sp, sp, #64
    bl plain
    mov sp, x29
    .seh_startepilogue
    ldp x21, x22, [sp, #16]
    .seh_save_regp x21, 16
    ldp x29, x30, [sp], #48
    .seh_save_fplr_x 48
    .seh_endepilogue
    ret
    .seh_endproc

    .seh_proc all_pairs
all_pairs:
    stp x19, x20, [sp, #-128]!
    .seh_save_regp_x x19, 128
    stp x21, x22, [sp, #16]
    .seh_save_next
    stp x23, x24, [sp, #32]
    .seh_save_next
    stp d8, d9, [sp, #48]
    .seh_save_fregp d8, 48
    stp d10, d11, [sp, #64]
    .seh_save_next
    str d12, [sp, #80]
    .seh_save_freg d12, 80
    stp x29, x30, [sp, #96]
    .seh_save_fplr 96
    add x29, sp, #96
    .seh_add_fp 96
    .seh_endprologue
    mov x19, #1
    mov x20, #2
    mov x21, #3
    mov x22, #4
    mov x23, #5
    mov x24, #6
    bl plain
    sub sp, sp, #32
    bl chained_record
    .seh_startepilogue
    sub sp, x29, #96
    .seh_add_fp 96
    ldp x29, x30, [sp, #96]
    .seh_save_fplr 96
    ldr d12, [sp, #80]
    .seh_save_freg d12, 80
    ldp d10, d11, [sp, #64]
    .seh_save_next
    ldp d8, d9, [sp, #48]
    .seh_save_fregp d8, 48
    ldp x23, x24, [sp, #32]
    .seh_save_next
    ldp x21, x22, [sp, #16]
    .seh_save_next
    ldp x19, x20, [sp], #128
    .seh_save_regp_x x19, 128
    .seh_endepilogue
    ret
    .seh_endproc

    .seh_proc any_register
any_register:
    stp x25, x26, [sp, #-64]!
    .seh_save_any_reg_px x25, 64
    str x30, [sp, #16]
    .seh_save_any_reg x30, 16
    stp x27, x28, [sp, #32]
    .seh_save_any_reg_p x27, 32
    stp q8, q9, [sp, #-32]!
    .seh_save_any_reg_px q8, 32
    .seh_endprologue
    mov x25, #1
    mov x26, #2
    mov x27, #3
    mov x28, #4
    bl plain
    .seh_startepilogue
    ldp q8, q9, [sp], #32
    .seh_save_any_reg_px q8, 32
    ldp x27, x28, [sp, #32]
    .seh_save_any_reg_p x27, 32
    ldr x30, [sp, #16]
    .seh_save_any_reg x30, 16
    ldp x25, x26, [sp], #64
    .seh_save_any_reg_px x25, 64
    .seh_endepilogue
    ret
    .seh_endproc

    .seh_proc link_pair
link_pair:
    sub sp, sp, #32
    .seh_stackalloc 32
    stp x21, x30, [sp, #8]
    .seh_save_lrpair x21, 8
    nop
    .seh_nop
    .seh_endprologue
    mov x21, #1
    bl plain
    .seh_startepilogue
    ldp x21, x30, [sp, #8]
    .seh_save_lrpair x21, 8
    add sp, sp, #32
    .seh_stackalloc 32
    .seh_endepilogue
    ret
    .seh_endproc

    .seh_proc pointer_inside
pointer_inside:
    pacibsp
    .seh_pac_sign_lr
    sub sp, sp, #1024
    .seh_stackalloc 1024
    stp x29, x30, [sp, #64]
    .seh_save_fplr 64
    add x29, sp, #64
    .seh_add_fp 64
    .seh_endprologue
    bl plain
    .seh_startepilogue
    ldp x29, x30, [sp, #64]
    .seh_save_fplr 64
    add sp, sp, #1024
    .seh_stackalloc 1024
    autibsp
    .seh_pac_sign_lr
    .seh_endepilogue
    ret
    .seh_endproc

    .seh_proc large
large:
    stp x29, x30, [sp, #-16]!
    .seh_save_fplr_x 16
    sub sp, sp, #16, lsl #12
    .seh_stackalloc 65536
    .seh_endprologue
    bl plain
    .seh_startepilogue
    add sp, sp, #16, lsl #12
    .seh_stackalloc 65536
    ldp x29, x30, [sp], #16
    .seh_save_fplr_x 16
    .seh_endepilogue
    ret
    .seh_endproc

    .seh_proc single
single:
    str x19, [sp, #-16]!
    .seh_save_reg_x x19, 16
    str d8, [sp, #-16]!
    .seh_save_freg_x d8, 16
    .seh_endprologue
    mov x19, #1
    .seh_startepilogue
    ldr d8, [sp], #16
    .seh_save_freg_x d8, 16
    ldr x19, [sp], #16
    .seh_save_reg_x x19, 16
    .seh_endepilogue
    ret
    .seh_endproc

    .seh_proc two_epilogues
two_epilogues:
    stp x29, x30, [sp, #-16]!
    .seh_save_any_reg_px x29, 16
    .seh_endprologue
    bl plain
    cbz x0, 1f
    .seh_startepilogue
    ldp x29, x30, [sp], #16
    .seh_save_any_reg_px x29, 16
    .seh_endepilogue
    b plain
1:  mov x29, #3
    .seh_startepilogue
    ldp x29, x30, [sp], #16
    .seh_save_any_reg_px x29, 16
    .seh_endepilogue
    ret
    .seh_endproc

// Parts of it lie elsewhere, each with unwind information of its own, written out below.
    .seh_proc split
split:
    stp x19, x20, [sp, #-16]!
    .seh_save_regp_x x19, 16
    stp x29, x30, [sp, #-16]!
    .seh_save_fplr_x 16
    mov x29, sp
    .seh_set_fp
    .seh_endprologue
    mov x19, #1
    mov x20, #2
    b part_packed
1:  b part_full
2:  b part_with_prologue
3:  b part_of_part
4:  nop
    .seh_startepilogue
    ldp x29, x30, [sp], #16
    .seh_save_fplr_x 16
    ldp x19, x20, [sp], #16
    .seh_save_regp_x x19, 16
    .seh_endepilogue
    ret
    .seh_endproc

part_packed:
    nop
    bl plain
    b 1b
part_full:
    nop
    bl plain
    b 2b
part_with_prologue:
    stp x21, x22, [sp, #-16]!
    mov x21, #3
    mov x22, #4
    bl plain
    ldp x21, x22, [sp], #16
    b 3b
part_of_part:
    nop
    bl plain
    b 4b
after_parts:

    .section .xdata, "dr"
    .p2align 2
full_part:                              // 3 instructions, no epilogue, 2 words of codes
    .long 3 | 2 << 27
    .byte 0xe5                          // end_c
    .byte 0xe1, 0x81, 0xcc, 0x01, 0xe4  // set_fp; save_fplr_x 16; save_regp_x x19, 16; end
    .byte 0xe3, 0xe3
part_prologue:                          // 6 instructions, an epilogue at the fourth, 2 words of codes
    .long 6 | 1 << 22 | 2 << 27
    .long 4
    .byte 0xcc, 0x81, 0xe5              // save_regp_x x21, 16; end_c
    .byte 0xe1, 0x81, 0xcc, 0x01, 0xe4
    .p2align 3
entry_of_part:
    .rva part_full, full_part

    .section .pdata, "dr"
    .rva part_packed
    .long 2 | 3 << 2 | 2 << 16 | 3 << 21 | 2 << 23
    .rva part_full, full_part
    .rva part_with_prologue, part_prologue
    .rva part_of_part
    .long entry_of_part@IMGREL + 3

// Interrupts itself as a processor would, or an exception. Behind the instruction that marks it (hint #100), the next one
// is not executed, but the handler's first, as if interrupted: the address of the former is in x17, the stack pointer in
// x16.
    .text
    .macro interrupt handler
    mov x16, sp
    adr x17, 9f
    \handler\()_frame
    hint #100
    b \handler
9:  nop
    .endm

    .macro on_machine_frame_frame
    stp x16, x17, [sp, #-16]!
    .endm
    .macro on_trap_frame_frame
    sub sp, sp, #0x150
    str x16, [sp, #0x98]
    str x30, [sp, #0x138]
    str x29, [sp, #0x140]
    str x17, [sp, #0x148]
    .endm
    .macro on_context_frame
    sub sp, sp, #0x390
    stp x19, x20, [sp, #0xa0]
    stp x21, x22, [sp, #0xb0]
    stp x23, x24, [sp, #0xc0]
    stp x25, x26, [sp, #0xd0]
    stp x27, x28, [sp, #0xe0]
    stp x29, x30, [sp, #0xf0]
    stp x16, x17, [sp, #0x100]
    .endm
    .macro on_exact_address_frame
    mov x30, x17
    .endm

    .seh_proc interrupted
interrupted:
    stp x29, x30, [sp, #-32]!
    .seh_save_fplr_x 32
    mov x29, sp
    .seh_set_fp
    str x19, [sp, #16]
    .seh_save_reg x19, 16
    .seh_endprologue
    mov x19, #5
    interrupt on_machine_frame
    interrupt on_trap_frame
    interrupt on_context
    interrupt on_exact_address
    mov sp, x29
    .seh_startepilogue
    ldr x19, [sp, #16]
    .seh_save_reg x19, 16
    ldp x29, x30, [sp], #32
    .seh_save_fplr_x 32
    .seh_endepilogue
    ret
    .seh_endproc

// No instruction of a program returns from an interrupt: the last two stand for one, between which nothing is known.
    .seh_proc on_machine_frame
on_machine_frame:
    .seh_pushframe
    stp x29, x30, [sp, #-16]!
    .seh_save_fplr_x 16
    .seh_endprologue
    mov x29, #1
    bl plain
    ldp x29, x30, [sp]
    ldp x16, x17, [sp, #16]
    mov sp, x16
    br x17
    .seh_endproc

    .seh_proc on_trap_frame
on_trap_frame:
    .seh_trap_frame
    stp x19, x20, [sp, #-16]!
    .seh_save_regp_x x19, 16
    .seh_endprologue
    mov x19, #6
    mov x29, #1
    bl plain
    ldr x16, [sp, #0x98 + 16]
    ldr x30, [sp, #0x138 + 16]
    ldr x29, [sp, #0x140 + 16]
    ldr x17, [sp, #0x148 + 16]
    ldp x19, x20, [sp]
    mov sp, x16
    br x17
    .seh_endproc

    .seh_proc on_context
on_context:
    .seh_context
    sub sp, sp, #32
    .seh_stackalloc 32
    .seh_endprologue
    mov x19, #6
    mov x28, #7
    bl plain
    ldp x19, x20, [sp, #0xa0 + 32]
    ldp x27, x28, [sp, #0xe0 + 32]
    ldp x29, x30, [sp, #0xf0 + 32]
    ldp x16, x17, [sp, #0x100 + 32]
    mov sp, x16
    br x17
    .seh_endproc

    .seh_proc on_exact_address
on_exact_address:
    .seh_clear_unwound_to_call
    stp x29, x30, [sp, #-16]!
    .seh_save_fplr_x 16
    .seh_endprologue
    bl plain
    .seh_startepilogue
    ldp x29, x30, [sp], #16
    .seh_save_fplr_x 16
    .seh_clear_unwound_to_call
    .seh_endepilogue
    ret
    .seh_endproc

    .data
    .globl _fltused
_fltused:
    .long 0
