// Locks that are held for known times. Arguments: "plain" or "pi" (a mutex with priority inheritance), turns, milliseconds of
// holding in each turn, and a file to which the program writes the ids of the thread that waits and of the one that holds, the
// lock's address, and the least and the most nanoseconds for which the former can have been blocked in all. The lock is
// released when the other one has been seen asleep, and has slept for the time asked for.
#define _GNU_SOURCE
#include "asleep.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t lock;
static pthread_barrier_t turn;
static long turns, held_ms, waiter;
static _Atomic long came;

__attribute__((noinline)) void wait_for_lock(void) {
    came = now();
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
}

__attribute__((noinline)) void release_lock(void) {
    pthread_mutex_unlock(&lock);
    // Lest the call above becomes a jump, and this function is in no stack.
    __asm__ volatile("");
}

static void *waits(void *nothing) {
    (void)nothing;
    waiter = syscall(SYS_gettid);
    for (long done = 0; done < turns; done++) {
        pthread_barrier_wait(&turn);
        wait_for_lock();
        // Waits for the next turn are timed sleeps, for what is measured is the lock alone.
        came = 0;
    }
    return NULL;
}

int main(int count, char **values) {
    if (count != 5) return 2;
    turns = atol(values[2]), held_ms = atol(values[3]);
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    if (!strcmp(values[1], "pi")) pthread_mutexattr_setprotocol(&kind, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&lock, &kind);
    pthread_barrier_init(&turn, NULL, 2);
    pthread_t handle;
    pthread_create(&handle, NULL, waits, NULL);
    long least = 0, most = 0;
    for (long done = 0; done < turns; done++) {
        while (came) nap(100);
        pthread_mutex_lock(&lock);
        pthread_barrier_wait(&turn);
        while (!came) nap(100);
        long begin = came;
        // It may sleep for another reason for a moment.
        do nap(1000); while (!is_asleep(waiter));
        long asleep = now();
        nap(held_ms * 1000);
        least += now() - asleep;
        release_lock();
        most += now() - begin;
    }
    pthread_join(handle, NULL);
    FILE *told = fopen(values[4], "w");
    if (!told) return 2;
    fprintf(told, "%ld %d %lu %ld %ld\n", waiter, getpid(), (unsigned long)&lock, least, most);
    fclose(told);
    return 0;
}
