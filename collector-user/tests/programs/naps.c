// Threads that burn and sleep for known times. Arguments: threads, turns, microseconds of burning and of sleeping in each
// turn, and a file to which each thread writes its id, and for how many nanoseconds it burned, slept, and lived in all, as its
// clocks have it.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long turns, burn_us, sleep_us;
static FILE *told;

static long now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

__attribute__((noinline)) void burn_for(long us) {
    long end = now(CLOCK_THREAD_CPUTIME_ID) + us * 1000;
    while (now(CLOCK_THREAD_CPUTIME_ID) < end) {
    }
}

__attribute__((noinline)) long nap_for(long us) {
    long begin = now(CLOCK_MONOTONIC);
    struct timespec time = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&time, NULL);
    return now(CLOCK_MONOTONIC) - begin;
}

static void *live(void *nothing) {
    (void)nothing;
    long begin = now(CLOCK_MONOTONIC), slept = 0;
    for (long turn = 0; turn < turns; turn++) {
        if (burn_us) burn_for(burn_us);
        if (sleep_us) slept += nap_for(sleep_us);
    }
    long burned = now(CLOCK_THREAD_CPUTIME_ID);
    fprintf(told, "%ld %ld %ld %ld\n", syscall(SYS_gettid), burned, slept, now(CLOCK_MONOTONIC) - begin);
    return NULL;
}

int main(int count, char **values) {
    if (count != 6 || !(told = fopen(values[5], "w"))) return 2;
    long threads = atol(values[1]);
    turns = atol(values[2]), burn_us = atol(values[3]), sleep_us = atol(values[4]);
    pthread_t handles[64];
    for (long thread = 0; thread < threads && thread < 64; thread++) {
        pthread_create(&handles[thread], NULL, live, NULL);
    }
    for (long thread = 0; thread < threads && thread < 64; thread++) {
        pthread_join(handles[thread], NULL);
    }
    return 0;
}
