// main, work, burn_rounds in 20 children, one after the other and all of the same pid: 50 ms of CPU time each.
#define _GNU_SOURCE
#include "burn.h"
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

NOIPA void work(void) {
  while (cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) < 0.05) burn_rounds(CHUNK / 4);
  KEEP_FRAME();
}

int main(void) {
  pid_t pid = 0;
  for (int i = 0; i < 20; i++) {
    struct clone_args args = {.exit_signal = SIGCHLD};
    if (pid != 0) {
      args.set_tid = (uintptr_t)&pid;
      args.set_tid_size = 1;
    }
    long made = syscall(SYS_clone3, &args, sizeof args);
    if (made < 0) return 1;
    if (made == 0) {
      work();
      _exit(0);
    }
    pid = (pid_t)made;
    if (waitpid(pid, 0, 0) != pid) return 1;
  }
  return 0;
}
