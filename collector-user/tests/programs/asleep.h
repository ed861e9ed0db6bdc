// Times, and what the kernel says of threads, for programs in which one waits until another one does.
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// Nanoseconds by the monotonic clock.
static inline long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

static inline void nap(long us) {
    struct timespec time = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&time, NULL);
}

// The letter by which the kernel tells the state of a thread of this process (proc_pid_stat(5)).
static inline char state_of(long tid) {
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/self/task/%ld/stat", tid);
    FILE *file = fopen(path, "r");
    if (!file) {
        perror(path);
        exit(3);
    }
    size_t len = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[len] = 0;
    char *end = strrchr(text, ')');
    return end && end[1] == ' ' ? end[2] : 0;
}

// Whether the thread sleeps, and signals end that.
static inline int is_asleep(long tid) {
    return state_of(tid) == 'S';
}
