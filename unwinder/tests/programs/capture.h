/* Writes stacks to standard output: registers, the stack's bytes, and the chain of addresses as glibc's backtrace()
 * sees it. All words are 64 bits, little-endian:
 *   'S', name (32 bytes), ip, the registers in DWARF order up to the stack pointer, r15 or edi, stack base, stack length,
 *        bytes, chain length, addresses
 *   'C', address, length, bytes of code that is in no file
 *   'V', length, bytes of the vDSO
 *   'M', length, text of /proc/self/maps
 */
#define _GNU_SOURCE
#include <elf.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone, noipa))
#define MAX_CHAIN 4096

extern void *__libc_stack_end;
/* Where the copy of the stack ends; 0 is the main thread's end. */
static __thread uintptr_t stack_top;

static void put(const void *bytes, size_t length) {
    const char *at = (const char *)bytes;
    while (length) {
        ssize_t written = write(1, at, length);
        if (written <= 0) _exit(3);
        at += written;
        length -= written;
    }
}

static void put_word(uint64_t word) { put(&word, 8); }

#if defined(__x86_64__)
#define IP(context) ((context)->uc_mcontext.gregs[REG_RIP])
#define SP(context) ((context)->uc_mcontext.gregs[REG_RSP])
static void put_registers(const ucontext_t *context) {
    static const int order[16] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP,
                                  REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    for (int i = 0; i < 16; i++) put_word(context->uc_mcontext.gregs[order[i]]);
}
#elif defined(__i386__)
#define IP(context) ((context)->uc_mcontext.gregs[REG_EIP])
#define SP(context) ((context)->uc_mcontext.gregs[REG_ESP])
static void put_registers(const ucontext_t *context) {
    static const int order[8] = {REG_EAX, REG_ECX, REG_EDX, REG_EBX, REG_ESP, REG_EBP, REG_ESI, REG_EDI};
    for (int i = 0; i < 8; i++) put_word((uint32_t)context->uc_mcontext.gregs[order[i]]);
}
#elif defined(__aarch64__)
#define IP(context) ((context)->uc_mcontext.pc)
#define SP(context) ((context)->uc_mcontext.sp)
static void put_registers(const ucontext_t *context) {
    for (int i = 0; i < 31; i++) put_word(context->uc_mcontext.regs[i]);
    put_word(SP(context));
}
#endif

static void put_code(const void *address, size_t length) {
    put_word('C');
    put_word((uintptr_t)address);
    put_word(length);
    put(address, length);
}

static void put_stack(const char *name, const ucontext_t *context, void *const *chain, int length) {
    char padded[32] = {0};
    strncpy(padded, name, sizeof padded - 1);
    uintptr_t base = SP(context);
    uintptr_t top = stack_top ? stack_top : (uintptr_t)__libc_stack_end + sizeof(void *);
    put_word('S');
    put(padded, sizeof padded);
    put_word((uintptr_t)IP(context));
    put_registers(context);
    put_word(base);
    put_word(top - base);
    put((void *)base, top - base);
    put_word(length);
    for (int i = 0; i < length; i++) put_word((uintptr_t)chain[i]);
}

/* This function's own stack: its callers, as backtrace() finds them. */
static NOINLINE void capture(const char *name) {
    static __thread void *chain[MAX_CHAIN];
    ucontext_t context;
    int length = backtrace(chain, MAX_CHAIN);
    getcontext(&context);
    chain[0] = (void *)IP(&context);
    put_stack(name, &context, chain, length);
    __asm__ volatile("" ::: "memory");
}

/* The stack that a signal interrupted: what backtrace() finds from the interrupted address on. */
static void capture_interrupted(const char *name, const ucontext_t *context) {
    static void *chain[MAX_CHAIN];
    int length = backtrace(chain, MAX_CHAIN);
    for (int i = 0; i < length; i++) {
        if ((uintptr_t)chain[i] == (uintptr_t)IP(context)) {
            put_stack(name, context, chain + i, length - i);
            return;
        }
    }
}

static void put_maps(void) {
    static char text[1 << 20];
    const char *vdso = (const char *)getauxval(AT_SYSINFO_EHDR);
    if (vdso) {
        const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)vdso;
        size_t length = header->e_shoff + (size_t)header->e_shentsize * header->e_shnum;
        put_word('V');
        put_word(length);
        put(vdso, length);
    }
    size_t length = 0;
    int fd = open("/proc/self/maps", O_RDONLY);
    for (;;) {
        ssize_t got = read(fd, text + length, sizeof text - length);
        if (got <= 0) break;
        length += got;
    }
    put_word('M');
    put_word(length);
    put(text, length);
}
