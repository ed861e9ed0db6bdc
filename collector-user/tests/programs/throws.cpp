// throws TOLD ROUNDS: operators that throw, as they are asked for too much, and blocks in between. Writes to TOLD how many blocks and bytes it
// was given, how many it freed, and how often it caught something. With LIMITED in its environment it asks for 8 MiB at last when it has no
// addresses left for them.
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <new>
#include <sys/resource.h>
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

static void fails_in_limit() {
    struct rlimit all, none;
    if (getrlimit(RLIMIT_AS, &all) != 0) exit(3);
    none = all;
    none.rlim_cur = 4096;
    if (setrlimit(RLIMIT_AS, &none) != 0) exit(3);
    fails(8UL << 20);
    if (setrlimit(RLIMIT_AS, &all) != 0) exit(3);
}

int main(int count, char **values) {
    if (count != 3) return 2;
    int rounds = atoi(values[2]);
    for (int round = 0; round < rounds; round++) {
        fails(1UL << 60);
        deep(4);
    }
    if (getenv("LIMITED")) fails_in_limit();
    char text[128];
    int length = snprintf(text, sizeof text, "%lu %lu %lu %lu\n", blocks, bytes, freed, caught);
    int told = open(values[1], O_WRONLY | O_CREAT | O_TRUNC, 0644);
    return write(told, text, length) != length;
}
