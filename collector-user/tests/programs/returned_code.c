// For two seconds of CPU time calls a function that returns the address of one which is never called.
#include "burn.h"

NOIPA void never_called(void) {
  burn_rounds(CHUNK);
  KEEP_FRAME();
}

NOIPA void *gives(void) {
  return (char *)never_called + 4;
}

int main(void) {
  long calls = 0;
  while (calls % 1024 || cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) < 2.0) calls += gives() != 0;
  return 0;
}
