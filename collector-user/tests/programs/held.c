// Locks of the kernel that are held for known times. Arguments: "pipe" (the mutex of a pipe) or a path (the semaphore of that
// file, on tmpfs), turns, milliseconds of holding in each turn, and a file to which the program writes the ids of the thread that
// waits and of the one that holds, the process's id, and the least and the most nanoseconds for which the former can have been
// blocked in all. A fifth one is the loop device of the file: the thread writes to that, and it is `fsync` that waits, as the device
// can't write to its file; the least is from when the kernel says that a request is under way.
//
// One thread writes from a page that is not there, to what it has locked for that: the kernel asks for the page through a
// userfaultfd, and as long as it is not given, the lock is held. Meanwhile another thread writes to the same.
#define _GNU_SOURCE
#include "asleep.h"
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096 };

// The same for both; of a file opened twice, for each has its place in it, with a lock.
static int file, other, reader = -1;
static char *page;
// What the kernel says of the device.
static char inflight[64];
static long turns, held_ms, waiter, holder;
static _Atomic long came, went;
static sem_t hold, held, wait, waited;

static void fail(const char *what) {
    perror(what);
    exit(3);
}

// Whether it is as the thread that waits is to be found: asleep, or with what it wrote under way to the device.
static int is_waiting(void) {
    if (!*inflight) return is_asleep(waiter) || state_of(waiter) == 'D';
    long reads, writes = 0;
    FILE *requests = fopen(inflight, "r");
    if (!requests || fscanf(requests, "%ld %ld", &reads, &writes) != 2) fail(inflight);
    fclose(requests);
    return writes > 0;
}

__attribute__((noinline)) void wait_in_the_kernel(void) {
    static char bytes[PAGE];
    long len = *inflight ? PAGE : 1;
    if (*inflight && write(other, bytes, len) != len) fail("write");
    came = now();
    if (*inflight ? fsync(other) : write(other, bytes, len) != len) fail("write or fsync");
    went = now();
}

static void *holds(void *nothing) {
    (void)nothing;
    holder = syscall(SYS_gettid);
    for (long done = 0; done < turns; done++) {
        sem_wait(&hold);
        if (write(file, page, PAGE) != PAGE) fail("write");
        sem_post(&held);
    }
    return NULL;
}

static void *waits(void *nothing) {
    (void)nothing;
    waiter = syscall(SYS_gettid);
    for (long done = 0; done < turns; done++) {
        sem_wait(&wait);
        wait_in_the_kernel();
        sem_post(&waited);
    }
    return NULL;
}

int main(int count, char **values) {
    if (count != 5 && count != 6) return 2;
    turns = atol(values[2]), held_ms = atol(values[3]);
    if (!strcmp(values[1], "pipe")) {
        int ends[2];
        if (pipe(ends)) fail("pipe");
        reader = ends[0], file = other = ends[1];
    } else {
        file = open(values[1], O_CREAT | O_WRONLY, 0600);
        other = open(count == 6 ? values[5] : values[1], O_WRONLY);
        if (file < 0 || other < 0) fail(values[1]);
        if (count == 6) snprintf(inflight, sizeof inflight, "/sys/block/%s/inflight", strrchr(values[5], '/') + 1);
    }
    int faults = syscall(SYS_userfaultfd, O_CLOEXEC);
    struct uffdio_api api = {.api = UFFD_API};
    if (faults < 0 || ioctl(faults, UFFDIO_API, &api)) fail("userfaultfd");
    page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_register range = {.range = {(unsigned long)page, PAGE}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    if (page == MAP_FAILED || ioctl(faults, UFFDIO_REGISTER, &range)) fail("UFFDIO_REGISTER");
    sem_init(&hold, 0, 0), sem_init(&held, 0, 0), sem_init(&wait, 0, 0), sem_init(&waited, 0, 0);
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, holds, NULL);
    pthread_create(&threads[1], NULL, waits, NULL);
    long least = 0, most = 0;
    for (long done = 0; done < turns; done++) {
        if (madvise(page, PAGE, MADV_DONTNEED)) fail("madvise");
        came = went = 0;
        sem_post(&hold);
        struct uffd_msg fault;
        if (read(faults, &fault, sizeof fault) != sizeof fault) fail("userfaultfd");
        sem_post(&wait);
        while (!came) nap(100);
        // It may sleep for another reason for a moment.
        do nap(1000); while (!is_waiting());
        long asleep = now();
        nap(held_ms * 1000);
        least += now() - asleep;
        struct uffdio_zeropage zero = {.range = {(unsigned long)page, PAGE}};
        if (ioctl(faults, UFFDIO_ZEROPAGE, &zero)) fail("UFFDIO_ZEROPAGE");
        sem_wait(&held), sem_wait(&waited);
        most += went - came;
        char drained[PAGE + 1];
        for (long left = sizeof drained; reader >= 0 && left > 0;) {
            long got = read(reader, drained, left);
            if (got <= 0) fail("read");
            left -= got;
        }
    }
    pthread_join(threads[0], NULL), pthread_join(threads[1], NULL);
    FILE *told = fopen(values[4], "w");
    if (!told) fail(values[4]);
    fprintf(told, "%ld %ld %d %ld %ld\n", waiter, holder, getpid(), least, most);
    fclose(told);
    return 0;
}
