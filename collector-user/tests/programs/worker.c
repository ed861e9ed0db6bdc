// A thread by the name of `worker-thread` forks a child, which burns 0.3 s of CPU time.
#include "burn.h"
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void *worker(void *unused) {
  prctl(PR_SET_NAME, "worker-thread");
  pid_t child = fork();
  if (child == 0) {
    while (cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) < 0.3) burn_rounds(CHUNK);
    _exit(0);
  }
  if (child > 0) waitpid(child, 0, 0);
  return unused;
}

int main(void) {
  pthread_t thread;
  if (pthread_create(&thread, 0, worker, 0) != 0) return 1;
  return pthread_join(thread, 0);
}
