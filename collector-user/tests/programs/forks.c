// forks CHILDREN CALLS: makes processes, in which as in itself `work` is called so many times, with a turn for others in between.
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) void work(int number) { __asm__ volatile("" ::"r"(number)); }

static void call(int first, int end) {
  for (int number = first; number < end; number++) {
    work(number);
    if (number % 5 == 0) sched_yield();
  }
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  int children = atoi(argv[1]), calls = atoi(argv[2]);
  for (int child = 0; child < children; child++) {
    pid_t pid = fork();
    if (pid < 0) return 1;
    if (pid == 0) {
      call(0, calls);
      _exit(0);
    }
    // A part of its own calls while the child makes its.
    call(child * calls / children, (child + 1) * calls / children);
  }
  while (wait(NULL) > 0) {
  }
  return 0;
}
