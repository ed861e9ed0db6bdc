// Prints `ready`, waits until its standard input ends, then burns half a second each in its main thread, in a thread
// and in a child, under the names `family`, `family-thread` and `family-child`.
#include "burn.h"
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

NOIPA void work(void) {
  while (cpu_seconds(CLOCK_THREAD_CPUTIME_ID) < 0.5) burn_rounds(CHUNK);
  KEEP_FRAME();
}

NOIPA void *thread_main(void *unused) {
  prctl(PR_SET_NAME, "family-thread");
  work();
  KEEP_FRAME();
  return unused;
}

NOIPA void child_main(void) {
  prctl(PR_SET_NAME, "family-child");
  work();
  KEEP_FRAME();
}

int main(void) {
  char byte;
  if (write(1, "ready\n", 6) != 6) return 1;
  while (read(0, &byte, 1) > 0) {
  }
  pthread_t thread;
  if (pthread_create(&thread, 0, thread_main, 0) != 0) return 1;
  pid_t child = fork();
  if (child < 0) return 1;
  if (child == 0) {
    child_main();
    _exit(0);
  }
  work();
  pthread_join(thread, 0);
  return waitpid(child, 0, 0) != child;
}
