// A thread that waits for a moment very often, for somewhat less than a millisecond at times, and 30 times for 30 milliseconds. The second
// kind is sampled with a small chance, and a sample of one stands for many. Argument: a file to which is written for how many milliseconds
// all of its waits took that took ten or more, as its clock has it, for a machine may keep a thread waiting.
#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>

static long wait_for(long nanoseconds) {
    struct timespec begin, end, time = {0, nanoseconds};
    clock_gettime(CLOCK_MONOTONIC, &begin);
    nanosleep(&time, NULL);
    clock_gettime(CLOCK_MONOTONIC, &end);
    return (end.tv_sec - begin.tv_sec) * 1000000000L + end.tv_nsec - begin.tv_nsec;
}

int main(int count, char **values) {
    FILE *told;
    if (count != 2 || !(told = fopen(values[1], "w"))) return 2;
    // Without it the kernel adds 50 us to each.
    prctl(PR_SET_TIMERSLACK, 1);
    // What wakes it shall run it, so that hardly any wait is one for a CPU.
    struct sched_param first = {1};
    if (sched_setscheduler(0, SCHED_FIFO, &first)) return 1;
    long all = 0;
    for (int turn = 0; turn < 60000; turn++) {
        long took = wait_for(turn % 200 ? 10000 : turn % 2000 ? 900000 : 30000000);
        if (took >= 10000000) all += took;
    }
    fprintf(told, "%ld\n", (all + 999999) / 1000000);
    return fclose(told) != 0;
}
