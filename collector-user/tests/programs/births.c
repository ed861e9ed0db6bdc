// main, make_thread or make_process, glibc: 10,000 threads and 1,000 processes that do nothing.
#define _GNU_SOURCE
#include "burn.h"
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

static void *nothing(void *unused) { return unused; }

NOIPA int make_thread(void) {
  pthread_t thread;
  int failed = pthread_create(&thread, 0, nothing, 0) || pthread_join(thread, 0);
  KEEP_FRAME();
  return failed;
}

NOIPA int make_process(void) {
  pid_t pid;
  char *arguments[] = {"true", 0};
  int failed = posix_spawnp(&pid, "true", 0, 0, arguments, environ) || waitpid(pid, 0, 0) != pid;
  KEEP_FRAME();
  return failed;
}

int main(void) {
  for (int i = 0; i < 10000; i++)
    if (make_thread() || (i % 10 == 0 && make_process())) return 1;
  return 0;
}
