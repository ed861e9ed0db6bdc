// A child on every CPU, each 3 s of CPU time in five functions whose shares are 8 : 5 : 3 : 2 : 1.
#define _GNU_SOURCE
#include "burn.h"
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOT(name)                                             \
  NOIPA void name(unsigned long rounds) {                     \
    unsigned long x = rounds + 1;                             \
    for (unsigned long i = 0; i < rounds; i++) {              \
      x ^= x << 13;                                           \
      x ^= x >> 7;                                            \
      x ^= x << 17;                                           \
      __asm__ volatile("" : "+r"(x));                         \
    }                                                         \
  }
HOT(hot_first)
HOT(hot_second)
HOT(hot_third)
HOT(hot_fourth)
HOT(hot_fifth)

NOIPA void work(void) {
  // The order changes from turn to turn, so that no clock can stay in step with it.
  unsigned turn = 12345;
  while (cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) < 3.0) {
    for (int i = 0; i < 20; i++) {
      turn = turn * 1103515245U + 12345U;
      unsigned pick = (turn >> 16) % 19;
      if (pick < 8) hot_first(10000);
      else if (pick < 13) hot_second(10000);
      else if (pick < 16) hot_third(10000);
      else if (pick < 18) hot_fourth(10000);
      else hot_fifth(10000);
    }
  }
}

int main(void) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    pid_t pid = fork();
    if (pid < 0) return 1;
    if (pid == 0) {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      if (sched_setaffinity(0, sizeof one, &one) != 0) _exit(1);
      work();
      _exit(0);
    }
  }
  int status, failed = 0;
  while (wait(&status) > 0) failed |= status;
  return failed != 0;
}
