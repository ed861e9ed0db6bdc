// Threads that timers wake while others run on their CPU, and one that another thread wakes through the network. Argument: turns.
//
// `naps` sleeps, and `limited` waits for a futex that nobody wakes, for 2 ms each time. On their CPU `busy` runs code of its own, and
// `releases` wakes nobody, by a futex that nobody waits for. `asks` sends a byte to `answers` when it has seen it asleep.
#define _GNU_SOURCE
#include "asleep.h"
#include <arpa/inet.h>
#include <linux/futex.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LIMIT_NS = 2000000 };

static long turns;
static int asking, answering;
static _Atomic long answers_tid, answered;
static _Atomic int is_over;
static int waited_for, released;

static void *naps(void *nothing) {
    for (long turn = 0; turn < turns; turn++) nap(LIMIT_NS / 1000);
    return nothing;
}

static void *limited(void *nothing) {
    struct timespec limit = {0, LIMIT_NS};
    for (long turn = 0; turn < turns; turn++) syscall(SYS_futex, &waited_for, FUTEX_WAIT_PRIVATE, 0, &limit, NULL, 0);
    return nothing;
}

static void *busy(void *nothing) {
    while (!is_over) {
    }
    return nothing;
}

static void *releases(void *nothing) {
    while (!is_over) syscall(SYS_futex, &released, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    return nothing;
}

static void *answers(void *nothing) {
    char byte;
    answers_tid = syscall(SYS_gettid);
    while (read(answering, &byte, 1) == 1) answered++;
    return nothing;
}

static void *asks(void *nothing) {
    while (!answers_tid) nap(100);
    for (long turn = 0; turn < turns; turn++) {
        // It has read what it was sent before, and stays asleep.
        do nap(2000); while (answered < turn || !is_asleep(answers_tid));
        if (write(asking, "", 1) != 1) exit(3);
    }
    shutdown(asking, SHUT_WR);
    return nothing;
}

static void connect_both(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listens = socket(AF_INET, SOCK_STREAM, 0), is_at_once = 1;
    asking = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listens, (void *)&address, size) || listen(listens, 1) || getsockname(listens, (void *)&address, &size)) exit(3);
    if (connect(asking, (void *)&address, size) || (answering = accept(listens, NULL, NULL)) < 0) exit(3);
    setsockopt(asking, IPPROTO_TCP, TCP_NODELAY, &is_at_once, sizeof is_at_once);
}

static pthread_t start(const char *name, void *(*run)(void *)) {
    pthread_t made;
    pthread_create(&made, NULL, run, NULL);
    pthread_setname_np(made, name);
    return made;
}

// Threads that are made from now on run on one CPU.
static void stay_on_one_cpu(void) {
    cpu_set_t allowed, one;
    int cpu = 0;
    if (sched_getaffinity(0, sizeof allowed, &allowed)) exit(3);
    while (!CPU_ISSET(cpu, &allowed)) cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one)) exit(3);
}

int main(int count, char **values) {
    if (count != 2) return 2;
    turns = atol(values[1]);
    connect_both();
    pthread_t network[] = {start("answers", answers), start("asks", asks)};
    stay_on_one_cpu();
    pthread_t hit[] = {start("busy", busy), start("releases", releases)};
    pthread_t woken[] = {start("naps", naps), start("limited", limited)};
    for (int one = 0; one < 2; one++) pthread_join(woken[one], NULL);
    is_over = 1;
    for (int one = 0; one < 2; one++) pthread_join(hit[one], NULL);
    for (int one = 0; one < 2; one++) pthread_join(network[one], NULL);
    return 0;
}
