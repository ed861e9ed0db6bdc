/* Burns CPU twelve calls deep, without frame pointers, on a stack of a given depth.
   busy SECONDS STACK_KIB; prints how many rounds it made. */
#include <alloca.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static volatile uint64_t sink;

#define CALLS(name, next)                                                                          \
    __attribute__((noinline)) uint64_t name(uint64_t x) {                                          \
        uint64_t r = next(x + 1);                                                                  \
        sink += r;                                                                                 \
        return r ^ x;                                                                              \
    }

__attribute__((noinline)) uint64_t leaf(uint64_t x) {
    for (int i = 0; i < 2000; i++)
        x = x * 6364136223846793005ull + 1442695040888963407ull;
    return x;
}

CALLS(f1, leaf) CALLS(f2, f1) CALLS(f3, f2) CALLS(f4, f3) CALLS(f5, f4) CALLS(f6, f5)
CALLS(f7, f6) CALLS(f8, f7) CALLS(f9, f8) CALLS(f10, f9) CALLS(f11, f10) CALLS(f12, f11)

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

__attribute__((noinline)) static uint64_t run(double end) {
    uint64_t rounds = 0;
    while (now() < end) {
        for (int i = 0; i < 100; i++)
            f12(i);
        rounds++;
    }
    return rounds;
}

__attribute__((noinline)) static uint64_t on_deep_stack(double end, size_t depth) {
    char *room = alloca(depth);
    memset(room, 1, depth);
    uint64_t rounds = run(end);
    sink += room[rounds % depth];
    return rounds;
}

int main(int argc, char **argv) {
    double end = now() + (argc > 1 ? atof(argv[1]) : 1);
    size_t depth = argc > 2 ? strtoul(argv[2], 0, 10) * 1024 : 0;
    printf("%llu\n", (unsigned long long)on_deep_stack(end, depth + 1));
    return 0;
}
