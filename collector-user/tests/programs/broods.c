// Once something can be read from its input, makes so many children one after the other as its second argument says. Each
// touches 500 fresh pages in `touch_brood` and ends. Writes to the file of its first argument how many faults without reading from
// a disk the kernel counted: for all children, for itself meanwhile, and for itself from its begin to its end.
#include "burn.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 500 };

NOIPA void touch_brood(char *memory) {
  for (int page = 0; page < PAGES; page++) memory[page * PAGE] = 1;
  KEEP_FRAME();
}

int main(int count, char **arguments) {
  if (count != 3) return 2;
  char *memory = mmap(0, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  // One page at a time, whatever the machine does by itself.
  madvise(memory, PAGES * PAGE, MADV_NOHUGEPAGE);
  FILE *told = fopen(arguments[1], "w");
  char begin;
  if (!told || read(0, &begin, 1) < 0) return 1;
  struct rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  long of_children = 0;
  for (long left = atol(arguments[2]); left > 0; left--) {
    pid_t child = fork();
    if (child == 0) {
      touch_brood(memory);
      _exit(0);
    }
    int status;
    struct rusage used;
    if (wait4(child, &status, 0, &used) != child || status) return 1;
    of_children += used.ru_minflt;
  }
  getrusage(RUSAGE_SELF, &after);
  fprintf(told, "%ld %ld %ld\n", of_children, after.ru_minflt - before.ru_minflt, after.ru_minflt);
  return fclose(told);
}
