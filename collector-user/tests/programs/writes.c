// Writes to /dev/null as often as the first argument says: the i-th time i + 1 bytes that begin with TEXTS[i % 4], every other
// time through a descriptor that is open for reading alone. Then writes as often at a place, the i-th time 1000 + i bytes.
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *TEXTS[] = {"zero", "one", "two words", ""};

int main(int argc, char **argv) {
    int times = argc > 1 ? atoi(argv[1]) : 100;
    int ends[2] = {open("/dev/null", O_WRONLY), open("/dev/null", O_RDONLY)};
    static char bytes[4096];
    for (int i = 0; i < times; i++) {
        strcpy(bytes, TEXTS[i % 4]);
        if (write(ends[i % 2], bytes, i + 1) < 0 && i % 2 == 0)
            return 1;
    }
    for (int i = 0; i < times; i++) {
        if (pwrite(ends[0], bytes, 1000 + i, 0) < 0)
            return 1;
    }
    return 0;
}
