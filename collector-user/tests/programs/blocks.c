// blocks TOLD ROUNDS: allocates memory in known ways, and writes to TOLD what it came to: blocks, bytes, blocks freed, bytes
// kept, nanoseconds.
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static unsigned long blocks, bytes, freed, kept;

static void *touch(void *block, unsigned long size) {
    if (!block) _exit(1);
    *(volatile char *)block = 1;
    blocks += 1;
    bytes += size;
    return block;
}

static void drop(void *block) {
    free(block);
    freed += 1;
}

__attribute__((noinline)) void keeps(unsigned long size) {
    touch(malloc(size), size);
    kept += size;
}

__attribute__((noinline)) void churns(unsigned long size) { drop(touch(malloc(size), size)); }

__attribute__((noinline)) void clears(unsigned long size) { drop(touch(calloc(4, size / 4), size)); }

__attribute__((noinline)) void grows(unsigned long size) {
    void *block = touch(realloc(NULL, size / 2), size / 2);
    block = touch(realloc(block, size), size);
    freed += 1;
    drop(block);
}

__attribute__((noinline)) void aligns(unsigned long size) {
    void *block = NULL;
    if (posix_memalign(&block, 64, size)) _exit(1);
    drop(touch(block, size));
    drop(touch(aligned_alloc(64, size), size));
    drop(touch(memalign(64, size), size));
}

__attribute__((noinline)) void fails(void) {
    void *volatile block = malloc(1UL << 60);
    if (block) _exit(1);
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    int rounds = atoi(argv[2]);
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    // One large block, once: kept, and no leak.
    touch(malloc(1 << 20), 1 << 20);
    kept += 1 << 20;
    for (int round = 0; round < rounds; round++) {
        keeps(256);
        churns(192);
        clears(128);
        grows(256);
        aligns(192);
        fails();
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    unsigned long took = (end.tv_sec - start.tv_sec) * 1000000000UL + end.tv_nsec - start.tv_nsec;
    char text[128];
    int length = snprintf(text, sizeof text, "%lu %lu %lu %lu %lu\n", blocks, bytes, freed, kept, took);
    int told = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0644);
    return write(told, text, length) != length;
}
