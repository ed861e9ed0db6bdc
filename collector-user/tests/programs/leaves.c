// leaves GATE PROCESSES BLOCKS [LAST]: for each byte that comes through GATE, one process after the other allocates so many blocks of 64 bytes, and
// then one of LAST bytes, and ends without freeing any. At its end this process allocates as many itself, and frees each second one.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *allocated[4096];

__attribute__((noinline)) void leaves(int blocks) {
    for (int i = 0; i < blocks; i++) *(volatile char *)malloc(64) = 1;
    __asm__ volatile("");
}

__attribute__((noinline)) void stays(int blocks) {
    for (int i = 0; i < blocks; i++) *(volatile char *)(allocated[i] = malloc(64)) = 1;
    __asm__ volatile("");
}

int main(int argc, char **argv) {
    if (argc != 4 && argc != 5) return 2;
    int gate = open(argv[1], O_RDONLY), processes = atoi(argv[2]), blocks = atoi(argv[3]);
    char byte;
    while (read(gate, &byte, 1) == 1 && byte != '.')
        for (int i = 0; i < processes; i++) {
            pid_t pid = fork();
            if (pid < 0) return 1;
            if (pid == 0) {
                leaves(blocks);
                if (argc == 5) *(volatile char *)malloc(atoi(argv[4])) = 1;
                _exit(0);
            }
            if (waitpid(pid, 0, 0) != pid) return 1;
        }
    stays(blocks);
    for (int i = 0; i < blocks; i += 2) free(allocated[i]);
    return 0;
}
