// Calls functions and passes markers with known values, as often as the first argument says.
#include <stdio.h>
#include <stdlib.h>

#define KEPT __attribute__((noinline, noclone, visibility("default")))

// A marker as <sys/sdt.h> makes it: a nop, and a note of where it is and what its arguments are.
#define STR_(x) #x
#define STR(x) STR_(x)
#define NOTE(provider, name, semaphore, arguments)                                 \
    "990: nop\n"                                                                   \
    ".pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n"                        \
    ".4byte 992f-991f, 994f-993f, 3\n"                                             \
    "991: .asciz \"stapsdt\"\n992: .balign 4\n"                                    \
    "993: .8byte 990b\n.8byte _.stapsdt.base\n.8byte " semaphore "\n"              \
    ".asciz \"" provider "\"\n.asciz \"" name "\"\n.asciz \"" arguments "\"\n"     \
    "994: .balign 4\n.popsection\n"                                                \
    ".ifndef _.stapsdt.base\n"                                                     \
    ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"        \
    ".weak _.stapsdt.base\n.hidden _.stapsdt.base\n"                               \
    "_.stapsdt.base: .space 1\n.size _.stapsdt.base, 1\n.popsection\n.endif\n"

__attribute__((section(".probes"), visibility("hidden"))) unsigned short probed_watched_semaphore;

static const char *TEXTS[] = {"zero", "one", "two words", ""};

KEPT long long work(int a, const char *text, long long c) {
    __asm__ volatile("" ::: "memory");
    return a - c + (text[0] == 'o');
}

KEPT int part_one(int a) {
    __asm__ volatile("" ::: "memory");
    return a + 1;
}

KEPT int part_two(int a) {
    __asm__ volatile("" ::: "memory");
    return a + 2;
}

KEPT int part_three(int a) {
    __asm__ volatile("" ::: "memory");
    return a + 3;
}

KEPT int choice_one(int a) {
    return a;
}

typedef int (*Choice)(int);
static Choice choose(void) {
    return choice_one;
}
KEPT int chosen(int a) __attribute__((ifunc("choose")));

KEPT void marked(int number, const char *text) {
    __asm__ volatile(NOTE("probed", "always", "0", "-4@%0 8@%1 -4@$-5 8@(%%rsp)") ::"r"(number), "r"(text));
    if (probed_watched_semaphore)
        __asm__ volatile(NOTE("probed", "watched", "probed_watched_semaphore", "-4@%0") ::"r"(number));
}

int main(int argc, char **argv) {
    int times = argc > 1 ? atoi(argv[1]) : 100;
    long long sum = 0;
    for (int i = 0; i < times; i++) {
        sum += work(i - 50, TEXTS[i % 4], (long long)i << 33);
        sum += part_one(i) + part_two(i) + part_three(i) + chosen(i);
        marked(-i, TEXTS[i % 4]);
    }
    return sum == 42;
}
