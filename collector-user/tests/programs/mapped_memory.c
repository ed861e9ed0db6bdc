// mapped_memory TOLD: asks the kernel for memory in known ways, and writes to TOLD how many bytes it got by each: mmap, mremap,
// brk.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, TIMES = 50 };

static unsigned long by_mmap, by_mremap, by_brk;

static char *map(unsigned long size, int protection) {
    char *memory = mmap(NULL, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) _exit(1);
    return memory;
}

__attribute__((noinline)) void maps(unsigned long size) {
    // Not whole pages: the kernel gives whole ones.
    map(size - 100, PROT_READ | PROT_WRITE)[0] = 1;
    by_mmap += size;
    // Set aside, and no memory.
    map(size, PROT_NONE);
}

__attribute__((noinline)) void moves(unsigned long size) {
    char *memory = map(size, PROT_READ | PROT_WRITE);
    by_mmap += size;
    memory = mremap(memory, size, 3 * size, MREMAP_MAYMOVE);
    if (memory == MAP_FAILED) _exit(1);
    by_mremap += 2 * size;
    // It shrinks.
    if (mremap(memory, 3 * size, size, 0) == MAP_FAILED) _exit(1);
}

__attribute__((noinline)) void extends(unsigned long size) {
    if (sbrk(size) == (void *)-1) _exit(1);
    by_brk += size;
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    sbrk(0);
    for (int time = 0; time < TIMES; time++) {
        maps(8 * PAGE);
        moves(16 * PAGE);
        extends(4 * PAGE);
    }
    char text[96];
    int length = snprintf(text, sizeof text, "%lu %lu %lu\n", by_mmap, by_mremap, by_brk);
    int told = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0644);
    return write(told, text, length) != length;
}
