/* Maps a PE image, calls its entry point and stops after every instruction in it (the trap flag makes each raise SIGTRAP).
 * For each stop it prints the registers, the stack, and who is to be returned to: an account of calls that it keeps itself,
 * by what the processor does. A call leaves the address behind itself on top of the stack; a return takes it away.
 *
 * Words of 8 bytes on stdout, for each stop: rip; 16 registers in DWARF order; the stack's first address, its length in
 * bytes, the bytes; the number of open calls; for each, innermost first: return address, rsp behind the return, rbx, rbp,
 * rsi, rdi, r12 to r15 as they were at the call, and 1 if it was an interrupt.
 *
 * An int3 in the image is made an interrupt: the handler that rax names begins with the frame that the processor pushes,
 * and with an error code if rdx is not 0. */
#define _GNU_SOURCE
#include "pe_image.h"
#include <signal.h>
#include <ucontext.h>

#define TRAP_FLAG 0x100
#define MAX_OPEN 256
#define MAX_STEPS 40000
#define LONGEST_INSTRUCTION 15

static const int DWARF_ORDER[16] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP,
                                    REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
static const int KEPT[8] = {REG_RBX, REG_RBP, REG_RSI, REG_RDI, REG_R12, REG_R13, REG_R14, REG_R15};

struct call {
    uint64_t return_address, sp, kept[8], interrupted;
};

static struct call calls[MAX_OPEN];
static int open_calls, steps, watching;
static uint64_t stack_end, last_ip, last_sp, last_kept[8];

static void put(const void *bytes, size_t length) {
    if (fwrite(bytes, 1, length, stdout) != length) abort();
}
static void put_word(uint64_t word) { put(&word, sizeof word); }

static void add_call(uint64_t return_address, uint64_t sp, uint64_t interrupted) {
    if (open_calls == MAX_OPEN) abort();
    struct call *call = &calls[open_calls++];
    call->return_address = return_address;
    call->sp = sp;
    call->interrupted = interrupted;
    memcpy(call->kept, last_kept, sizeof last_kept);
}

/* Pushes ss, rsp, the flags, cs and rip on the aligned stack, as the processor does in 64-bit mode. */
static void interrupt(greg_t *registers) {
    uint64_t sp = registers[REG_RSP], *top = (uint64_t *)(sp & ~15ul);
    uint16_t cs, ss;
    __asm__("mov %%cs, %0\n mov %%ss, %1" : "=r"(cs), "=r"(ss));
    add_call(registers[REG_RIP], sp, 1);
    *--top = ss;
    *--top = sp;
    *--top = registers[REG_EFL] | TRAP_FLAG;
    *--top = cs;
    *--top = registers[REG_RIP];
    if (registers[REG_RDX]) *--top = 0;
    registers[REG_RSP] = (uintptr_t)top;
    registers[REG_RIP] = registers[REG_RAX];
}

static void on_trap(int signal, siginfo_t *info, void *context) {
    (void)signal;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    if (!watching || steps > MAX_STEPS) {
        registers[REG_EFL] &= ~TRAP_FLAG;
        return;
    }
    int is_int3 = info->si_code == SI_KERNEL;
    if (is_int3) interrupt(registers);
    uint64_t ip = registers[REG_RIP], sp = registers[REG_RSP];
    while (open_calls && sp >= calls[open_calls - 1].sp) open_calls--;
    uint64_t top = *(uint64_t *)sp;
    if (!is_int3 && sp == last_sp - 8 && top > last_ip && top <= last_ip + LONGEST_INSTRUCTION && ip != top)
        add_call(top, last_sp, 0);
    last_ip = ip;
    last_sp = sp;
    for (int i = 0; i < 8; i++) last_kept[i] = registers[KEPT[i]];
    if (ip < image_start || ip >= image_end) return;
    steps++;
    put_word(ip);
    for (int i = 0; i < 16; i++) put_word(registers[DWARF_ORDER[i]]);
    put_word(sp);
    put_word(stack_end - sp);
    put((void *)sp, stack_end - sp);
    put_word(open_calls);
    for (int i = open_calls; i-- > 0;) put(&calls[i], sizeof calls[i]);
}

static __attribute__((noinline)) long call_watched(void *entry) {
    long (*function)(long) __attribute__((ms_abi)) = entry;
    char end;
    stack_end = ((uintptr_t)&end + 15) & ~15ul;
    watching = 1;
    __asm__ volatile("pushf\n orl $0x100, (%%rsp)\n popf" ::: "memory", "cc");
    long result = function(3);
    watching = 0;
    __asm__ volatile("nop");
    return result;
}

int main(int count, char **arguments) {
    static char handler_stack[1 << 16];
    if (count != 2) return 1;
    void *entry = load(arguments[1]);
    stack_t stack = {.ss_sp = handler_stack, .ss_size = sizeof handler_stack};
    sigaltstack(&stack, NULL);
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGTRAP, &action, NULL);
    long result = call_watched(entry);
    fprintf(stderr, "%ld\n", result);
    fflush(stdout);
    return 0;
}
