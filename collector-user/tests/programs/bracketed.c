// Asks for its parent, meets a page absent and sleeps for 2 ms, 20 times, and writes to a file what `CLOCK_MONOTONIC`, `CLOCK_REALTIME`
// and `CLOCK_BOOTTIME` showed before and after each time: a line with three numbers of nanoseconds, and three more.
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { TIMES = 20, PAGE = 4096 };

struct shown {
  long nanoseconds[3];
};

static struct shown read_clocks(void) {
  static const clockid_t clocks[] = {CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_BOOTTIME};
  struct shown shown;
  for (int i = 0; i < 3; i++) {
    struct timespec t;
    clock_gettime(clocks[i], &t);
    shown.nanoseconds[i] = t.tv_sec * 1000000000L + t.tv_nsec;
  }
  return shown;
}

int main(int count, char **arguments) {
  if (count != 2) return 2;
  // Its pages come one by one.
  volatile char *pages = mmap(NULL, TIMES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  FILE *told = fopen(arguments[1], "w");
  if (pages == MAP_FAILED || !told) return 1;
  madvise((void *)pages, TIMES * PAGE, MADV_NOHUGEPAGE);
  struct timespec two_ms = {0, 2000000};
  for (int i = 0; i < TIMES; i++) {
    struct shown before = read_clocks();
    syscall(SYS_getppid);
    pages[i * PAGE] = 1;
    syscall(SYS_nanosleep, &two_ms, NULL);
    struct shown after = read_clocks();
    for (int clock = 0; clock < 3; clock++) fprintf(told, "%ld ", before.nanoseconds[clock]);
    for (int clock = 0; clock < 3; clock++) fprintf(told, clock < 2 ? "%ld " : "%ld\n", after.nanoseconds[clock]);
  }
  return fclose(told);
}
