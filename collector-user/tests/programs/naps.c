// Threads that burn and sleep for known times. Arguments: threads, turns, microseconds of burning and of sleeping in each turn.
// Each thread writes for how many nanoseconds it burned, slept, and lived in all, as its clocks have it.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long turns, burn_us, sleep_us;

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
    printf("%ld %ld %ld\n", burned, slept, now(CLOCK_MONOTONIC) - begin);
    return NULL;
}

int main(int count, char **values) {
    if (count != 5) return 2;
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
