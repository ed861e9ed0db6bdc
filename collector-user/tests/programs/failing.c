// failing TOLD ROUNDS: asks for memory in vain in many ways, in between for some that it gets, and writes to TOLD what it came to: blocks,
// bytes, blocks freed, bytes kept, and how many calls failed.
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static unsigned long blocks, bytes, freed, kept, failed;

// What a call gave that was asked for so many bytes.
static void *given(void *block, unsigned long size) {
    if (!block) {
        failed += 1;
        return NULL;
    }
    *(volatile char *)block = 1;
    blocks += 1;
    bytes += size;
    return block;
}

static void drop(void *block) {
    if (!block) return;
    free(block);
    freed += 1;
}

// A number that the compiler does not know.
static size_t unknown(size_t number) {
    __asm__ volatile("" : "+r"(number));
    return number;
}

__attribute__((noinline)) void too_much(void) {
    drop(given(malloc(unknown(1UL << 60)), 1UL << 60));
    drop(given(calloc(unknown(1UL << 50), unknown(1UL << 10)), 1UL << 60));
    drop(given(aligned_alloc(64, unknown(1UL << 60)), 1UL << 60));
    drop(given(memalign(64, unknown(1UL << 60)), 1UL << 60));
    void *block = NULL;
    drop(given(posix_memalign(&block, 64, unknown(1UL << 60)) ? NULL : block, 1UL << 60));
}

// More than a number has room for: 2^64, and 2^64 + 64.
__attribute__((noinline)) void overflows(void) {
    drop(given(calloc(unknown(1UL << 63), 2), 0));
    drop(given(calloc(unknown((1UL << 60) + 4), 16), 64));
    drop(given(reallocarray(NULL, unknown(1UL << 61), 8), 0));
}

// No power of two.
__attribute__((noinline)) void misaligned(void) {
    void *block = NULL;
    drop(given(posix_memalign(&block, unknown(24), 64) ? NULL : block, 64));
}

// Some take the next one.
__attribute__((noinline)) void may_be_misaligned(void) { drop(given(aligned_alloc(unknown(24), 64), 64)); }

// The block stays what it is.
__attribute__((noinline)) void grows_in_vain(void) {
    void *block = given(malloc(100), 100);
    if (given(realloc(block, unknown(1UL << 60)), 1UL << 60)) _exit(1);
    if (given(reallocarray(block, unknown(1UL << 61), 8), 0)) _exit(1);
    if (given(reallocarray(block, unknown(1UL << 50), 1UL << 10), 1UL << 60)) _exit(1);
    kept += 100;
}

__attribute__((noinline)) void gets(void) {
    drop(given(malloc(100), 100));
    void *block = NULL;
    drop(given(posix_memalign(&block, 64, 100) ? NULL : block, 100));
    drop(given(aligned_alloc(64, 128), 128));
}

// With a limit that there soon is.
__attribute__((noinline)) void runs_out(void) {
    static void *some[64];
    for (int i = 0; i < 64; i++) some[i] = given(malloc(unknown(1 << 20)), 1 << 20);
    for (int i = 0; i < 64; i++) drop(some[i]);
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    int rounds = atoi(argv[2]);
    for (int round = 0; round < rounds; round++) {
        too_much();
        overflows();
        misaligned();
        may_be_misaligned();
        grows_in_vain();
        gets();
    }
    unsigned long pages = 0;
    char text[160] = "";
    int statm = open("/proc/self/statm", O_RDONLY);
    if (read(statm, text, sizeof text - 1) <= 0) return 1;
    pages = strtoul(text, NULL, 10);
    struct rlimit limit = {pages * sysconf(_SC_PAGESIZE) + (16UL << 20), RLIM_INFINITY};
    if (setrlimit(RLIMIT_AS, &limit)) return 1;
    runs_out();
    int length = snprintf(text, sizeof text, "%lu %lu %lu %lu %lu\n", blocks, bytes, freed, kept, failed);
    int told = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0644);
    return write(told, text, length) != length;
}
