// main, work, burn_rounds for 5 ms of CPU time: gone before anybody looks for it.
#include "burn.h"

NOIPA void work(void) {
  while (cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) < 0.005) burn_rounds(CHUNK / 4);
  KEEP_FRAME();
}

int main(void) {
  work();
  return 0;
}
