/* Functions with hand-written CFI that call `clobber_and_capture`. */
void outer_rbx(const char *name);
void outer_r13(const char *name);
void outer_expression(const char *name);
void outer_moved(const char *name);
__asm__(
    ".text\n"
    /* cfa = rbx + 16 */
    ".globl outer_rbx\n.type outer_rbx, @function\nouter_rbx:\n.cfi_startproc\n"
    "push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset %rbx, 0\n"
    "mov %rsp, %rbx\n.cfi_def_cfa_register %rbx\n"
    "sub $200, %rsp\nand $-64, %rsp\ncall clobber_and_capture\n"
    "mov %rbx, %rsp\n.cfi_def_cfa_register %rsp\n"
    "pop %rbx\n.cfi_adjust_cfa_offset -8\n.cfi_restore %rbx\nret\n.cfi_endproc\n.size outer_rbx, .-outer_rbx\n"
    /* cfa = r13 + 16, with rbp in use for something else and its value of the caller in r14 */
    ".globl outer_r13\n.type outer_r13, @function\nouter_r13:\n.cfi_startproc\n"
    "push %r13\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset %r13, 0\n"
    "push %r14\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset %r14, 0\n"
    "lea 8(%rsp), %r13\n.cfi_def_cfa %r13, 16\n"
    "mov %rbp, %r14\n.cfi_register %rbp, %r14\n"
    "mov $42, %ebp\n"
    "sub $1000, %rsp\nand $-16, %rsp\ncall clobber_and_capture\n"
    "mov %r14, %rbp\n.cfi_restore %rbp\n"
    "lea -8(%r13), %rsp\n.cfi_def_cfa %rsp, 24\n"
    "pop %r14\n.cfi_adjust_cfa_offset -8\n.cfi_restore %r14\n"
    "pop %r13\n.cfi_adjust_cfa_offset -8\n.cfi_restore %r13\nret\n.cfi_endproc\n.size outer_r13, .-outer_r13\n"
    /* As OpenSSL's assembly does: the stack pointer of entry is saved at the realigned top.
     * cfa = *(rsp + 8) + 8; and rbp by val_expression: the word at cfa - 16 */
    ".globl outer_expression\n.type outer_expression, @function\nouter_expression:\n.cfi_startproc\n"
    "mov %rsp, %rax\n.cfi_def_cfa_register %rax\n"
    "push %rbp\n.cfi_offset %rbp, -16\n"
    "sub $300, %rsp\nand $-64, %rsp\n"
    "mov %rax, 8(%rsp)\n"
    ".cfi_escape 0x0f, 0x05, 0x77, 0x08, 0x06, 0x23, 0x08\n"
    ".cfi_escape 0x16, 0x06, 0x06, 0x08, 0x10, 0x1c, 0x06, 0x96, 0x96\n"
    "mov $43, %ebp\ncall clobber_and_capture\n"
    "mov 8(%rsp), %rax\n.cfi_def_cfa %rax, 8\n"
    "mov -8(%rax), %rbp\n.cfi_restore %rbp\n"
    "mov %rax, %rsp\n.cfi_def_cfa_register %rsp\nret\n.cfi_endproc\n.size outer_expression, .-outer_expression\n"
    /* The return address is moved into r12, which the callee saves. */
    ".globl outer_moved\n.type outer_moved, @function\nouter_moved:\n.cfi_startproc\n"
    "push %r12\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset %r12, 0\n"
    "mov 8(%rsp), %r12\n.cfi_register %rip, %r12\n"
    "movq $0, 8(%rsp)\nsub $16, %rsp\n.cfi_adjust_cfa_offset 16\ncall clobber_and_capture\n"
    "add $16, %rsp\n.cfi_adjust_cfa_offset -16\n"
    "mov %r12, 8(%rsp)\n.cfi_offset %rip, -8\n"
    "pop %r12\n.cfi_adjust_cfa_offset -8\n.cfi_restore %r12\nret\n.cfi_endproc\n.size outer_moved, .-outer_moved\n");

/* A signal whose handler returns to code without CFI, as musl's does. */
void plain_restorer(void);
__asm__(".text\nnop\n.globl plain_restorer\nplain_restorer:\nmov $15, %rax\nsyscall\n");
static void on_plain(int signal) {
    (void)signal;
    put_code((void *)plain_restorer, 9);
    capture("plain_restorer");
    sink++;
}
static NOINLINE void raise_plain(const char *name) {
    (void)name;
    struct {
        void (*handler)(int);
        unsigned long flags;
        void (*restorer)(void);
        unsigned long mask;
    } action = {on_plain, 0x04000000 /* SA_RESTORER */, plain_restorer, 0};
    syscall(SYS_rt_sigaction, SIGWINCH, &action, NULL, 8);
    raise(SIGWINCH);
    sink++;
}

#define OUTER(call) call(outer_rbx) call(outer_r13) call(outer_expression) call(outer_moved) call(raise_plain)
#define FAULT "ud2\nret\n"
#define FAULT_SIZE 2
