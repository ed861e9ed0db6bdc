// operators TOLD ROUNDS: has objects made by the operators of C++, and writes to TOLD the bytes of each way, and those that it keeps.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <new>

struct Small {
    volatile char bytes[48];
};

struct alignas(128) Aligned {
    volatile char bytes[128];
};

static Small *kept[100000];

extern "C" __attribute__((noinline)) void makes(int round) {
    Small *volatile object = new Small;
    object->bytes[0] = 1;
    if (round % 2 == 0)
        delete object;
    else
        kept[round] = object;
}

extern "C" __attribute__((noinline)) void makes_many() {
    char *volatile room = new char[1000];
    room[0] = 1;
    delete[] room;
    char *volatile none = new (std::nothrow) char[500];
    if (!none) abort();
    delete[] none;
}

extern "C" __attribute__((noinline)) void makes_aligned() {
    Aligned *volatile object = new Aligned;
    object->bytes[0] = 1;
    delete object;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    int rounds = atoi(argv[2]);
    for (int round = 0; round < rounds; round++) {
        makes(round);
        makes_many();
        makes_aligned();
    }
    char text[128];
    int length = snprintf(text, sizeof text, "%d %d %d %d\n", rounds * 48, rounds * 1500, rounds * 128, rounds / 2 * 48);
    int told = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0644);
    return write(told, text, length) != length;
}
