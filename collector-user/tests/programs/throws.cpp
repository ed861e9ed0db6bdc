// throws TOLD ROUNDS: operators that throw, as they are asked for too much, and blocks in between. Writes to TOLD how many blocks and bytes it
// was given, how many it freed, and how often it caught something.
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <new>
#include <unistd.h>

static unsigned long blocks, bytes, freed, caught;

extern "C" __attribute__((noinline)) char *takes(unsigned long size) {
    char *block = new char[size];
    *(volatile char *)block = 1;
    blocks += 1;
    bytes += size;
    return block;
}

__attribute__((noinline)) static void fails(unsigned long size) {
    try {
        takes(size);
    } catch (const std::bad_alloc &) {
        caught += 1;
    }
}

// Deeper on the stack than the call that has thrown.
extern "C" __attribute__((noinline)) void deep(int depth) {
    char room[512];
    if (depth > 0) {
        deep(depth - 1);
    } else {
        delete[] takes(48);
        freed += 1;
    }
    __asm__ volatile("" : : "r"(room) : "memory");
}

int main(int count, char **values) {
    if (count != 3) return 2;
    int rounds = atoi(values[2]);
    for (int round = 0; round < rounds; round++) {
        fails(1UL << 60);
        deep(4);
    }
    char text[128];
    int length = snprintf(text, sizeof text, "%lu %lu %lu %lu\n", blocks, bytes, freed, caught);
    int told = open(values[1], O_WRONLY | O_CREAT | O_TRUNC, 0644);
    return write(told, text, length) != length;
}
