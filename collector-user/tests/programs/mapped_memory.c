// mapped_memory TOLD: asks the kernel for memory in known ways, and writes to TOLD how many bytes it got by each: mmap, mremap,
// brk, brk in processes that it makes.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, TIMES = 50 };

static unsigned long by_mmap, by_mremap, by_brk, by_children;

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

// Neither what shows a file nor what nobody may touch becomes memory as it grows.
__attribute__((noinline)) void moves_others(const char *program, unsigned long size) {
    int file = open(program, O_RDONLY);
    char *shown = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    if (shown == MAP_FAILED || mremap(shown, PAGE, size, MREMAP_MAYMOVE) == MAP_FAILED) _exit(1);
    if (mremap(map(PAGE, PROT_NONE), PAGE, size, MREMAP_MAYMOVE) == MAP_FAILED) _exit(1);
    close(file);
}

__attribute__((noinline)) void extends(unsigned long size) {
    if (sbrk(size) == (void *)-1) _exit(1);
    by_brk += size;
}

__attribute__((noinline)) void extends_as_child(unsigned long size) {
    if (sbrk(size) == (void *)-1) _exit(1);
    if (sbrk(size / 4) == (void *)-1) _exit(1);
    _exit(0);
}

// A process whose heap grows. It has the pid that is asked for, unless that is 0. Gives its pid; 0 where another one has that.
static pid_t child(pid_t wanted, unsigned long size) {
    struct clone_args how = {.exit_signal = SIGCHLD};
    if (wanted) how.set_tid = (unsigned long)&wanted, how.set_tid_size = 1;
    pid_t pid = syscall(SYS_clone3, &how, sizeof how);
    if (pid == 0) extends_as_child(size);
    if (pid < 0) return 0;
    int status;
    if (waitpid(pid, &status, 0) != pid || status != 0) _exit(1);
    by_children += size + size / 4;
    return pid;
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    sbrk(0);
    for (int time = 0; time < TIMES; time++) {
        maps(8 * PAGE);
        moves(16 * PAGE);
        moves_others(argv[0], 16 * PAGE);
        extends(4 * PAGE);
    }
    // The second one has the first one's pid, whose heap ended elsewhere.
    pid_t first;
    do {
        first = child(0, 64 * PAGE);
        if (!first) return 1;
    } while (!child(first, 16 * PAGE));
    char text[96];
    int length = snprintf(text, sizeof text, "%lu %lu %lu %lu\n", by_mmap, by_mremap, by_brk, by_children);
    int told = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0644);
    return write(told, text, length) != length;
}
