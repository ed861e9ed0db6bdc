// Two functions with frames larger than what is copied of a stack take turns, each with a chain of its own below.
#include "burn.h"

enum { LARGE = 100 << 10, TURN = 300000 };

#define CHAIN(name)                                    \
  NOIPA void inner_##name(void) {                      \
    burn_rounds(TURN);                                 \
    KEEP_FRAME();                                      \
  }                                                    \
  NOIPA void large_##name(void) {                      \
    volatile char frame[LARGE];                        \
    frame[0] = 1;                                      \
    inner_##name();                                    \
    KEEP_FRAME();                                      \
  }                                                    \
  NOIPA void outer_##name(void) {                      \
    large_##name();                                    \
    KEEP_FRAME();                                      \
  }

CHAIN(a)
CHAIN(b)

int main(void) {
  while (cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) < 1.0) {
    outer_a();
    outer_b();
  }
  return 0;
}
