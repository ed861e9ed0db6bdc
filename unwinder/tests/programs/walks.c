/* Stacks of several shapes, each captured at its innermost point. */
#include "capture.h"
#include <alloca.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static volatile int sink;

/* Recursion through frames of different sizes and different sets of saved registers. */
static NOINLINE long small_frame(long n, long a);
static NOINLINE long large_frame(long n, long a) {
    volatile char block[3000];
    block[n & 1023] = (char)a;
    long result = small_frame(n - 1, a + 1);
    return result * 3 + block[n & 1023];
}
static NOINLINE long many_saved(long n, long a, long b, long c, long d, long e) {
    long result = large_frame(n - 1, a + b + c + d + e);
    return result + a * b + c * d + e * n;
}
static NOINLINE long small_frame(long n, long a) {
    if (n <= 0) {
        capture("recursion");
        return a;
    }
    return n % 3 ? 1 + small_frame(n - 1, a + 2) : 1 + many_saved(n, a, a + 1, a + 2, a + 3, a + 4);
}

static int compare(const void *left, const void *right) {
    static int captured;
    if (!captured++) capture("qsort");
    return *(const int *)left - *(const int *)right;
}
static NOINLINE void sort(void) {
    int values[200];
    for (int i = 0; i < 200; i++) values[i] = (i * 7919) % 211;
    qsort(values, 200, sizeof *values, compare);
    sink = values[3];
}

static NOINLINE void with_alloca(int n) {
    volatile char *block = alloca(n);
    block[n / 2] = 1;
    capture("alloca");
    sink = block[n / 2];
}

/* The stack is realigned and has an alloca and stack arguments: the CFA is found through a saved r10. */
static NOINLINE int realigned(int n, int b, int c, int d, int e, int f, int g, int h) {
    volatile _Alignas(64) char block[256];
    volatile char *more = alloca(n);
    block[n & 255] = (char)(b + c + d + e + f + g + h);
    more[0] = 1;
    capture("realigned");
    return block[n & 255] + more[0] + h;
}

static NOINLINE void huge_frame(void) {
    volatile char block[100 * 1024];
    block[77] = 1;
    capture("huge_frame");
    sink = block[77];
}

/* Hand-written CFI. `outer_*` find their CFA in a register that the C function they call saves and reuses. */
NOINLINE void clobber_and_capture(const char *name) {
    register long a __asm__("rbx") = sink, b __asm__("r12") = sink, c __asm__("r13") = sink, d __asm__("r14") = sink;
    __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
    capture(name);
    __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
    sink = a + b + c + d;
}
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

static void on_signal(int signal, siginfo_t *info, void *context) {
    (void)info;
    capture(signal == SIGUSR1 ? "signal" : "fault");
    if (signal == SIGILL) ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
    sink++;
}
static void on_other_stack(int signal, siginfo_t *info, void *context) {
    (void)signal;
    (void)info;
    (void)context;
    static char *top;
    stack_t current;
    sigaltstack(NULL, &current);
    top = (char *)current.ss_sp + current.ss_size;
    stack_top = (uintptr_t)top;
    capture("alternate_stack");
    stack_top = 0;
}
static NOINLINE void raise_in(int signal) {
    raise(signal);
    sink++;
}
/* The faulting instruction is the function's first: its address minus one belongs to another function. */
void fault_at_entry(void);
__asm__(".text\n.globl fault_at_entry\n.type fault_at_entry, @function\nfault_at_entry:\n.cfi_startproc\n"
        "ud2\nret\n.cfi_endproc\n.size fault_at_entry, .-fault_at_entry\n");

/* A handler that returns as musl's and Go's do, to code without unwind information. */
void bare_return(void);
__asm__(".text\nnop\n.p2align 4\nnop\n.p2align 4\n.globl bare_return\n.type bare_return, @function\nbare_return:\n"
        "mov $15, %rax\nsyscall\n.size bare_return, .-bare_return\n");
static void on_bare_signal(int signal) {
    (void)signal;
    capture("bare_signal");
    sink++;
}
static void raise_bare(void) {
    struct {
        void (*handler)(int);
        unsigned long flags;
        void (*restorer)(void);
        unsigned long mask;
    } action = {on_bare_signal, 0x04000000 /* SA_RESTORER */, bare_return, 0};
    syscall(SYS_rt_sigaction, SIGUSR1, &action, NULL, sizeof action.mask);
    raise_in(SIGUSR1);
}

/* A context of its own: its first function was never called, but "returns" to glibc's __start_context. */
static ucontext_t back, forth;
static char context_stack[1 << 16];
static NOINLINE void in_context(void) {
    stack_top = (uintptr_t)context_stack + sizeof context_stack;
    capture("context");
    stack_top = 0;
    sink++;
}
static void run_context(void) {
    getcontext(&forth);
    forth.uc_stack.ss_sp = context_stack;
    forth.uc_stack.ss_size = sizeof context_stack;
    forth.uc_link = &back;
    makecontext(&forth, in_context, 0);
    swapcontext(&back, &forth);
}

static NOINLINE void *thread_work(void *argument) {
    capture("thread");
    sink++;
    return argument;
}
static void *thread_start(void *argument) {
    pthread_attr_t attributes;
    void *low;
    size_t size;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &low, &size);
    stack_top = (uintptr_t)low + size;
    void *result = thread_work(argument);
    sink++;
    return result;
}

int main(void) {
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGILL, &action, NULL);
    stack_t other = {.ss_size = 1 << 16};
    other.ss_sp = mmap(NULL, other.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaltstack(&other, NULL);
    action.sa_sigaction = on_other_stack;
    action.sa_flags |= SA_ONSTACK;
    sigaction(SIGUSR2, &action, NULL);

    sink = (int)small_frame(50, 1);
    sort();
    with_alloca(1000 + sink % 3);
    sink = realigned(500, 1, 2, 3, 4, 5, 6, sink);
    huge_frame();
    outer_rbx("outer_rbx");
    outer_r13("outer_r13");
    outer_expression("outer_expression");
    outer_moved("outer_moved");
    raise_in(SIGUSR1);
    fault_at_entry();
    raise_in(SIGUSR2);
    pthread_t thread;
    pthread_create(&thread, NULL, thread_start, NULL);
    pthread_join(thread, NULL);
    raise_bare();
    run_context();
    put_maps();
    return 0;
}
