// main, `a`, `b`, as many frames of `c` as the first argument says, `burns` or `naps`: half a second of CPU time, then as much
// asleep.
#include <stdlib.h>
#include <unistd.h>

#include "burn.h"

NOIPA void burns(void) {
  while (cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) < 0.5) burn_rounds(CHUNK);
  KEEP_FRAME();
}

NOIPA void naps(void) {
  for (int nap = 0; nap < 100; nap++) usleep(5000);
  KEEP_FRAME();
}

NOIPA void c(long depth, void (*leaf)(void)) {
  if (depth > 1)
    c(depth - 1, leaf);
  else
    leaf();
  KEEP_FRAME();
}

NOIPA void b(long depth, void (*leaf)(void)) {
  c(depth, leaf);
  KEEP_FRAME();
}

NOIPA void a(long depth, void (*leaf)(void)) {
  b(depth, leaf);
  KEEP_FRAME();
}

int main(int count, char **values) {
  long depth = count > 1 ? atol(values[1]) : 1;
  a(depth, burns);
  a(depth, naps);
  return 0;
}
