// main, sort_all, libc's qsort, compare, weigh, burn_rounds: a second of CPU time.
#include "burn.h"
#include <stdlib.h>

enum { COUNT = 256 };
static unsigned values[COUNT];

NOIPA unsigned weigh(unsigned value) {
  burn_rounds(20000);
  KEEP_FRAME();
  return value;
}

NOIPA int compare(const void *a, const void *b) {
  unsigned left = weigh(*(const unsigned *)a), right = weigh(*(const unsigned *)b);
  KEEP_FRAME();
  return (left > right) - (left < right);
}

NOIPA void sort_all(void) {
  for (unsigned i = 0; i < COUNT; i++) values[i] = (i * 2654435761U) >> 3;
  qsort(values, COUNT, sizeof values[0], compare);
  KEEP_FRAME();
}

int main(void) {
  while (cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) < 1.0) sort_all();
  return 0;
}
