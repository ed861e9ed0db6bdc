// distances DISTANCE ROUNDS: allocates blocks that are half as large as DISTANCE, as large, and two fifths larger, and keeps them.
#include <stdlib.h>
#include <unistd.h>

static void keep(unsigned long size) {
    char *volatile block = malloc(size);
    if (!block) _exit(1);
    *block = 1;
}

__attribute__((noinline)) void halves(unsigned long distance) { keep(distance / 2); }

__attribute__((noinline)) void wholes(unsigned long distance) { keep(distance); }

__attribute__((noinline)) void larger(unsigned long distance) { keep(distance * 7 / 5); }

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    unsigned long distance = strtoul(argv[1], NULL, 10);
    for (int rounds = atoi(argv[2]); rounds > 0; rounds--) {
        halves(distance);
        wholes(distance);
        larger(distance);
    }
    return 0;
}
