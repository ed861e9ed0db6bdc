// Threads that burn and sleep for known times. Arguments: threads, turns, microseconds of burning and of sleeping in each
// turn, and a file to which for each thread is written its id, for how many nanoseconds it burned, slept, and lived in all, as its
// clocks have it, and how long it was for the main thread from before it was made to after its end.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long turns, burn_us, sleep_us;
struct life {
    pthread_t handle;
    long made, id, burned, slept, lived;
};

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

static void *live(void *of) {
    struct life *life = of;
    long begin = now(CLOCK_MONOTONIC), slept = 0;
    for (long turn = 0; turn < turns; turn++) {
        if (burn_us) burn_for(burn_us);
        if (sleep_us) slept += nap_for(sleep_us);
    }
    life->id = syscall(SYS_gettid);
    life->burned = now(CLOCK_THREAD_CPUTIME_ID);
    life->slept = slept;
    life->lived = now(CLOCK_MONOTONIC) - begin;
    return NULL;
}

int main(int count, char **values) {
    FILE *told;
    if (count != 6 || !(told = fopen(values[5], "w"))) return 2;
    long threads = atol(values[1]);
    turns = atol(values[2]), burn_us = atol(values[3]), sleep_us = atol(values[4]);
    static struct life lives[64];
    for (long thread = 0; thread < threads && thread < 64; thread++) {
        struct life *life = &lives[thread];
        life->made = now(CLOCK_MONOTONIC);
        pthread_create(&life->handle, NULL, live, life);
    }
    for (long thread = 0; thread < threads && thread < 64; thread++) {
        struct life *life = &lives[thread];
        pthread_join(life->handle, NULL);
        long gone = now(CLOCK_MONOTONIC);
        fprintf(told, "%ld %ld %ld %ld %ld\n", life->id, life->burned, life->slept, life->lived, gone - life->made);
    }
    return 0;
}
