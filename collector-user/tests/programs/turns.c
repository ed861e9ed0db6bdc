// Two functions with frames larger than what is copied of a stack take turns, each with a chain of its own below. With an argument
// they move on the stack each 30 ms.
#include <alloca.h>
#include "burn.h"

enum { LARGE = 100 << 10, TURN = 300000 };

static const double SPELL = 0.03;

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

NOIPA void take_turns(double until) {
  while (cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) < until) {
    outer_a();
    outer_b();
  }
}

int main(int count, char **words) {
  (void)words;
  double now;
  while ((now = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID)) < 1.0) {
    if (count > 1) {
      *(volatile char *)alloca(4096) = 1;
    }
    take_turns(now + SPELL);
  }
  return 0;
}
