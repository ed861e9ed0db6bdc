// Makes system calls by their numbers, so that the C library makes none of the kind beside them: as many of `getppid` as its
// second argument says, else 5000, 300 of `openat2` for a file that is not there, and 20 of `nanosleep` for 10 ms, in
// `sleep_often`. Writes to a file for how many nanoseconds it saw the sleeps take: all together, and the longest.
#include "burn.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ASKED = 5000, OPENED = 300, SLEPT = 20 };

static long nanoseconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000L + t.tv_nsec;
}

NOIPA long sleep_often(long *longest) {
  struct timespec ten_ms = {0, 10000000};
  long all = 0;
  for (int i = 0; i < SLEPT; i++) {
    long before = nanoseconds();
    syscall(SYS_nanosleep, &ten_ms, NULL);
    long took = nanoseconds() - before;
    all += took;
    if (took > *longest) *longest = took;
  }
  KEEP_FRAME();
  return all;
}

int main(int count, char **arguments) {
  if (count != 2 && count != 3) return 2;
  int asked = count == 3 ? atoi(arguments[2]) : ASKED;
  for (int i = 0; i < asked; i++) syscall(SYS_getppid);
  for (int i = 0; i < OPENED; i++) {
    struct open_how how = {0};
    if (syscall(SYS_openat2, AT_FDCWD, "/no/such/file", &how, sizeof how) != -1 || errno != ENOENT) return 1;
  }
  long longest = 0;
  long all = sleep_often(&longest);
  FILE *told = fopen(arguments[1], "w");
  if (!told) return 1;
  fprintf(told, "%ld %ld\n", all, longest);
  return fclose(told);
}
