/* Stops after every instruction of a piece of work (the trap flag makes each raise SIGTRAP) and captures the stack it
 * interrupted: prologues, epilogues, PLT stubs, the runtime linker's lazy binding, the vDSO. */
#include "capture.h"
#include <time.h>

#define TRAP_FLAG 0x100
#define MAX_STEPS 6000

static volatile long sink;
static int steps, working;

static void on_trap(int signal, siginfo_t *info, void *context) {
    (void)signal;
    (void)info;
    ucontext_t *interrupted = context;
    if (working && steps++ < MAX_STEPS) {
        capture_interrupted("step", interrupted);
    } else {
        interrupted->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
    }
}

static NOINLINE long leaf(long a) { return a * 3 + sink; }
static NOINLINE long with_frame(long a, long b) {
    volatile char block[200];
    block[a & 127] = (char)b;
    return leaf(a) + leaf(b) * block[a & 127];
}
static NOINLINE long aligned_frame(long a) {
    volatile _Alignas(64) char block[128];
    block[a & 127] = (char)a;
    return with_frame(a, a + 1) + block[a & 127] + leaf(a);
}
static NOINLINE void work(void) {
    struct timespec now;
    sink += aligned_frame(sink + 5);
    clock_gettime(CLOCK_MONOTONIC, &now);
    sink += now.tv_nsec & 1;
    /* The first call of each goes through the runtime linker. */
    sink += strtol("12345", NULL, 10);
    sink += labs(sink);
}

int main(void) {
    void *warm[8];
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    backtrace(warm, 8);
    sigaction(SIGTRAP, &action, NULL);
    working = 1;
#if defined(__x86_64__)
    __asm__ volatile("pushf\n orl $0x100, (%%rsp)\n popf" ::: "memory", "cc");
#elif defined(__i386__)
    __asm__ volatile("pushf\n orl $0x100, (%%esp)\n popf" ::: "memory", "cc");
#endif
    work();
    working = 0;
    __asm__ volatile("nop");
    put_maps();
    return 0;
}
