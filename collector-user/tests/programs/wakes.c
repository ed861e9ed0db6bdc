// A thread, `woken`, that waits for two others in turn, `early` and `late`, for known times. Arguments: turns, milliseconds for which each of
// the two has it wait in each turn, and a file to which the program writes for each of them the least and the most nanoseconds for
// which the other one can have been blocked in all.
//
// It reads from a pipe, of which the two write when they have seen it asleep, and have slept for the time asked for.
#define _GNU_SOURCE
#include "asleep.h"
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *NAMES[] = {"early", "late"};

static long turns, wait_ms[2], least[2], most[2], waiter;
static int ends[2];
static _Atomic long came, went;
static sem_t turn[2];

static void *waits(void *nothing) {
    pthread_setname_np(pthread_self(), "woken");
    waiter = syscall(SYS_gettid);
    for (long done = 0; done < 2 * turns; done++) {
        char byte;
        came = now();
        if (read(ends[0], &byte, 1) != 1) exit(3);
        went = now();
    }
    return nothing;
}

static void *wakes(void *of) {
    long one = (long)of;
    pthread_setname_np(pthread_self(), NAMES[one]);
    for (long done = 0; done < turns; done++) {
        sem_wait(&turn[one]);
        while (!came) nap(100);
        // It may sleep for another reason for a moment.
        do nap(1000); while (!is_asleep(waiter));
        long begin = came, asleep = now();
        nap(wait_ms[one] * 1000);
        least[one] += now() - asleep;
        came = went = 0;
        if (write(ends[1], "", 1) != 1) exit(3);
        while (!went) nap(100);
        most[one] += went - begin;
        sem_post(&turn[!one]);
    }
    return NULL;
}

int main(int count, char **values) {
    if (count != 5 || pipe(ends)) return 2;
    turns = atol(values[1]), wait_ms[0] = atol(values[2]), wait_ms[1] = atol(values[3]);
    sem_init(&turn[0], 0, 1), sem_init(&turn[1], 0, 0);
    pthread_t woken, wakers[2];
    pthread_create(&woken, NULL, waits, NULL);
    for (long one = 0; one < 2; one++) pthread_create(&wakers[one], NULL, wakes, (void *)one);
    for (long one = 0; one < 2; one++) pthread_join(wakers[one], NULL);
    pthread_join(woken, NULL);
    FILE *told = fopen(values[4], "w");
    if (!told) return 2;
    for (long one = 0; one < 2; one++) fprintf(told, "%ld %ld\n", least[one], most[one]);
    return fclose(told);
}
