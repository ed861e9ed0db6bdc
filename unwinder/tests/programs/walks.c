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

/* `outer_*` find their CFA in a register that the C function they call saves and reuses. */
NOINLINE void clobber_and_capture(const char *name) {
#if defined(__x86_64__)
    register long a __asm__("rbx") = sink, b __asm__("r12") = sink, c __asm__("r13") = sink, d __asm__("r14") = sink;
#elif defined(__i386__)
    register long a __asm__("ebx") = sink, b __asm__("esi") = sink, c __asm__("edi") = sink, d = sink;
#elif defined(__aarch64__)
    register long a __asm__("x19") = sink, b __asm__("x20") = sink, c __asm__("x21") = sink, d __asm__("x28") = sink;
#endif
    __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+g"(d));
    capture(name);
    __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+g"(d));
    sink = a + b + c + d;
}
#if defined(__x86_64__)
#include "outer_x86_64.h"
#elif defined(__i386__)
#include "outer_x86.h"
#elif defined(__aarch64__)
#include "outer_aarch64.h"
#endif

static void on_signal(int signal, siginfo_t *info, void *context) {
    (void)info;
    put_code(__builtin_return_address(0), 8);
    capture(signal == SIGUSR1 ? "signal" : "fault");
    if (signal == SIGILL) IP((ucontext_t *)context) += FAULT_SIZE;
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
        FAULT ".cfi_endproc\n.size fault_at_entry, .-fault_at_entry\n");

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
#define CALL(function) function(#function);
    OUTER(CALL)
    raise_in(SIGUSR1);
    fault_at_entry();
    raise_in(SIGUSR2);
    pthread_t thread;
    pthread_create(&thread, NULL, thread_start, NULL);
    pthread_join(thread, NULL);
    run_context();
    put_maps();
    return 0;
}
