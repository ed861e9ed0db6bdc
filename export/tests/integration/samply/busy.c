#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

volatile uint64_t sink;

/* Computes for so many milliseconds of its thread's time on a CPU. */
__attribute__((noinline)) static void spin_for(long milliseconds)
{
    struct timespec now;
    do {
        for (int at = 0; at < 20000; at++)
            sink += at * 31;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < milliseconds);
}

__attribute__((noinline)) static void *other_work(void *unused)
{
    pthread_setname_np(pthread_self(), "other");
    spin_for(100);
    sink += 1;
    return unused;
}

__attribute__((noinline)) static void main_work(void)
{
    spin_for(100);
    sink += 2;
}

int main(void)
{
    pthread_t other;
    if (pthread_create(&other, NULL, other_work, NULL))
        abort();
    main_work();
    pthread_join(other, NULL);
    return 0;
}
