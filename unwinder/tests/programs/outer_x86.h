/* Functions with hand-written CFI that call `clobber_and_capture`. */
void outer_ebx(const char *name);
void outer_esi(const char *name);
void outer_expression(const char *name);
void outer_moved(const char *name);
__asm__(
    ".text\n"
    /* cfa = ebx + 8 */
    ".globl outer_ebx\n.type outer_ebx, @function\nouter_ebx:\n.cfi_startproc\n"
    "push %ebx\n.cfi_adjust_cfa_offset 4\n.cfi_rel_offset %ebx, 0\n"
    "mov %esp, %ebx\n.cfi_def_cfa_register %ebx\n"
    "mov 8(%ebx), %eax\n"
    "sub $200, %esp\nand $-64, %esp\nmov %eax, (%esp)\ncall clobber_and_capture\n"
    "mov %ebx, %esp\n.cfi_def_cfa_register %esp\n"
    "pop %ebx\n.cfi_adjust_cfa_offset -4\n.cfi_restore %ebx\nret\n.cfi_endproc\n.size outer_ebx, .-outer_ebx\n"
    /* cfa = esi + 8, with ebp in use for something else and its value of the caller in edi */
    ".globl outer_esi\n.type outer_esi, @function\nouter_esi:\n.cfi_startproc\n"
    "push %esi\n.cfi_adjust_cfa_offset 4\n.cfi_rel_offset %esi, 0\n"
    "push %edi\n.cfi_adjust_cfa_offset 4\n.cfi_rel_offset %edi, 0\n"
    "lea 4(%esp), %esi\n.cfi_def_cfa %esi, 8\n"
    "mov %ebp, %edi\n.cfi_register %ebp, %edi\n"
    "mov 8(%esi), %eax\nmov $42, %ebp\n"
    "sub $1000, %esp\nand $-16, %esp\nmov %eax, (%esp)\ncall clobber_and_capture\n"
    "mov %edi, %ebp\n.cfi_restore %ebp\n"
    "lea -4(%esi), %esp\n.cfi_def_cfa %esp, 12\n"
    "pop %edi\n.cfi_adjust_cfa_offset -4\n.cfi_restore %edi\n"
    "pop %esi\n.cfi_adjust_cfa_offset -4\n.cfi_restore %esi\nret\n.cfi_endproc\n.size outer_esi, .-outer_esi\n"
    /* As OpenSSL's assembly does: the stack pointer of entry is saved at the realigned top.
     * cfa = *(esp + 8) + 4; and ebp by val_expression: the word at cfa - 8 */
    ".globl outer_expression\n.type outer_expression, @function\nouter_expression:\n.cfi_startproc\n"
    "mov %esp, %eax\n.cfi_def_cfa_register %eax\n"
    "push %ebp\n.cfi_offset %ebp, -8\n"
    "sub $300, %esp\nand $-64, %esp\n"
    "mov %eax, 8(%esp)\n"
    ".cfi_escape 0x0f, 0x05, 0x74, 0x08, 0x06, 0x23, 0x04\n"
    ".cfi_escape 0x16, 0x05, 0x06, 0x08, 0x08, 0x1c, 0x06, 0x96, 0x96\n"
    "mov 4(%eax), %edx\nmov %edx, (%esp)\n"
    "mov $43, %ebp\ncall clobber_and_capture\n"
    "mov 8(%esp), %eax\n.cfi_def_cfa %eax, 4\n"
    "mov -4(%eax), %ebp\n.cfi_restore %ebp\n"
    "mov %eax, %esp\n.cfi_def_cfa_register %esp\nret\n.cfi_endproc\n.size outer_expression, .-outer_expression\n"
    /* The return address is moved into esi, which the callee saves. */
    ".globl outer_moved\n.type outer_moved, @function\nouter_moved:\n.cfi_startproc\n"
    "push %esi\n.cfi_adjust_cfa_offset 4\n.cfi_rel_offset %esi, 0\n"
    "mov 4(%esp), %esi\n.cfi_register %eip, %esi\n"
    "mov 8(%esp), %eax\n"
    "movl $0, 4(%esp)\nsub $8, %esp\n.cfi_adjust_cfa_offset 8\n"
    "mov %eax, (%esp)\ncall clobber_and_capture\n"
    "add $8, %esp\n.cfi_adjust_cfa_offset -8\n"
    "mov %esi, 4(%esp)\n.cfi_offset %eip, -4\n"
    "pop %esi\n.cfi_adjust_cfa_offset -4\n.cfi_restore %esi\nret\n.cfi_endproc\n.size outer_moved, .-outer_moved\n");

/* Signals whose handlers return to code without CFI, as musl's do: of either kind of frame. */
void plain_restorer(void);
void plain_rt_restorer(void);
__asm__(".text\nnop\n.globl plain_restorer\nplain_restorer:\npop %eax\nmov $119, %eax\nint $0x80\n"
        "nop\n.globl plain_rt_restorer\nplain_rt_restorer:\nmov $173, %eax\nint $0x80\n");
static void on_plain(int signal) {
    put_code(signal == SIGWINCH ? (void *)plain_restorer : (void *)plain_rt_restorer, 8);
    capture(signal == SIGWINCH ? "plain_restorer" : "plain_rt_restorer");
    sink++;
}
static NOINLINE void raise_plain(const char *name) {
    (void)name;
    struct {
        void (*handler)(int);
        unsigned long flags;
        void (*restorer)(void);
        unsigned long mask[2];
    } action = {on_plain, 0x04000000 /* SA_RESTORER */, plain_restorer, {0}};
    syscall(SYS_rt_sigaction, SIGWINCH, &action, NULL, 8);
    raise(SIGWINCH);
    action.flags |= SA_SIGINFO;
    action.restorer = plain_rt_restorer;
    syscall(SYS_rt_sigaction, SIGURG, &action, NULL, 8);
    raise(SIGURG);
    sink++;
}

#define OUTER(call) call(outer_ebx) call(outer_esi) call(outer_expression) call(outer_moved) call(raise_plain)
#define FAULT "ud2\nret\n"
#define FAULT_SIZE 2
