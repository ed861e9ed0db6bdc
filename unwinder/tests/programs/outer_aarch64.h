/* Functions with hand-written CFI that call `clobber_and_capture`. */
void outer_x19(const char *name);
void outer_x28(const char *name);
void outer_expression(const char *name);
void outer_moved(const char *name);
void outer_without_record(const char *name);
__asm__(
    ".text\n"
    /* cfa = x19 + 32 */
    ".globl outer_x19\n.type outer_x19, %function\nouter_x19:\n.cfi_startproc\n"
    "stp x29, x30, [sp, #-32]!\n.cfi_def_cfa_offset 32\n.cfi_offset x29, -32\n.cfi_offset x30, -24\n"
    "str x19, [sp, #16]\n.cfi_offset x19, -16\n"
    "mov x19, sp\n.cfi_def_cfa_register x19\n"
    "sub sp, sp, #208\nbl clobber_and_capture\n"
    "mov sp, x19\n.cfi_def_cfa_register sp\n"
    "ldr x19, [sp, #16]\n.cfi_restore x19\n"
    "ldp x29, x30, [sp], #32\n.cfi_restore x29\n.cfi_restore x30\n.cfi_def_cfa_offset 0\n"
    "ret\n.cfi_endproc\n.size outer_x19, .-outer_x19\n"
    /* cfa = x28 + 32, with x29 in use for something else and its value of the caller in x20 */
    ".globl outer_x28\n.type outer_x28, %function\nouter_x28:\n.cfi_startproc\n"
    "stp x28, x20, [sp, #-32]!\n.cfi_def_cfa_offset 32\n.cfi_offset x28, -32\n.cfi_offset x20, -24\n"
    "str x30, [sp, #16]\n.cfi_offset x30, -16\n"
    "mov x28, sp\n.cfi_def_cfa_register x28\n"
    "mov x20, x29\n.cfi_register x29, x20\n"
    "mov x29, #42\n"
    "sub sp, sp, #1008\nbl clobber_and_capture\n"
    "mov x29, x20\n.cfi_restore x29\n"
    "mov sp, x28\n.cfi_def_cfa_register sp\n"
    "ldr x30, [sp, #16]\n.cfi_restore x30\n"
    "ldp x28, x20, [sp], #32\n.cfi_restore x28\n.cfi_restore x20\n.cfi_def_cfa_offset 0\n"
    "ret\n.cfi_endproc\n.size outer_x28, .-outer_x28\n"
    /* The stack pointer of entry is saved: cfa = *(sp + 8); and x29 by val_expression: the word at cfa - 16 */
    ".globl outer_expression\n.type outer_expression, %function\nouter_expression:\n.cfi_startproc\n"
    "mov x9, sp\n"
    "stp x29, x30, [sp, #-16]!\n.cfi_def_cfa_offset 16\n.cfi_offset x29, -16\n.cfi_offset x30, -8\n"
    "sub sp, sp, #304\n.cfi_def_cfa_offset 320\n"
    "str x9, [sp, #8]\n"
    ".cfi_escape 0x0f, 0x03, 0x8f, 0x08, 0x06\n"
    ".cfi_escape 0x16, 0x1d, 0x06, 0x08, 0x10, 0x1c, 0x06, 0x96, 0x96\n"
    "mov x29, #43\nbl clobber_and_capture\n"
    "ldr x9, [sp, #8]\nldp x29, x30, [x9, #-16]\nmov sp, x9\n"
    ".cfi_def_cfa sp, 0\n.cfi_restore x29\n.cfi_restore x30\n"
    "ret\n.cfi_endproc\n.size outer_expression, .-outer_expression\n"
    /* The return address is moved into x20, which the callee saves. */
    ".globl outer_moved\n.type outer_moved, %function\nouter_moved:\n.cfi_startproc\n"
    "stp x29, x20, [sp, #-16]!\n.cfi_def_cfa_offset 16\n.cfi_offset x29, -16\n.cfi_offset x20, -8\n"
    "mov x20, x30\n.cfi_register x30, x20\n"
    "mov x29, sp\nbl clobber_and_capture\n"
    "mov x30, x20\n.cfi_restore x30\n"
    "ldp x29, x20, [sp], #16\n.cfi_restore x29\n.cfi_restore x20\n.cfi_def_cfa_offset 0\n"
    "ret\n.cfi_endproc\n.size outer_moved, .-outer_moved\n"
    /* x29 is free for anything, and x30 alone is saved. */
    ".globl outer_without_record\n.type outer_without_record, %function\nouter_without_record:\n.cfi_startproc\n"
    "str x30, [sp, #-48]!\n.cfi_def_cfa_offset 48\n.cfi_offset x30, -48\n"
    "str x29, [sp, #40]\n.cfi_offset x29, -8\n"
    "mov x29, #44\nbl clobber_and_capture\n"
    "ldr x29, [sp, #40]\n.cfi_restore x29\n"
    "ldr x30, [sp], #48\n.cfi_restore x30\n.cfi_def_cfa_offset 0\n"
    "ret\n.cfi_endproc\n.size outer_without_record, .-outer_without_record\n");

#define OUTER(call) call(outer_x19) call(outer_x28) call(outer_expression) call(outer_moved) call(outer_without_record)
#define FAULT "udf #0\nret\n"
#define FAULT_SIZE 4
