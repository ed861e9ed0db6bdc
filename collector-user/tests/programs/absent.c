// main, outer, inner, burn_rounds: a second of CPU time, while a page of the stack between the frames of outer and inner,
// in which is the way back from inner's caller, can't be read, as one that is swapped out.
#include "burn.h"
#include <stdint.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

NOIPA int inner(char *page) {
  // Two pages below the page of the caller.
  volatile char frame[3 * PAGE];
  frame[0] = 1;
  if (mprotect(page, PAGE, PROT_NONE) != 0) return 1;
  while (cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) < 1.0) burn_rounds(CHUNK);
  return mprotect(page, PAGE, PROT_READ | PROT_WRITE) != 0;
}

NOIPA int outer(void) {
  char *frame = __builtin_frame_address(0);
  int failed = inner((char *)((uintptr_t)frame & ~(uintptr_t)(PAGE - 1)));
  KEEP_FRAME();
  return failed;
}

int main(void) {
  int failed = outer();
  KEEP_FRAME();
  return failed;
}
