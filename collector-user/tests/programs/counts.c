// Whether the kernel counts events of the processor, with samples, as perf_event_open(2) has it. Arguments: pairs of `type` and `config` of
// `struct perf_event_attr`, as numbers. Prints for each 0, or the error of the system by its number.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int count, char **values) {
    for (int at = 1; at + 1 < count; at += 2) {
        struct perf_event_attr event = {
            .size = sizeof event,
            .type = strtoul(values[at], NULL, 0),
            .config = strtoull(values[at + 1], NULL, 0),
            .freq = 1,
            .sample_freq = 100,
            .disabled = 1,
        };
        // Of all that runs on CPU 0.
        long opened = syscall(SYS_perf_event_open, &event, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
        printf("%d\n", opened < 0 ? errno : 0);
        if (opened >= 0) close(opened);
    }
}
