// For two seconds of CPU time calls a function that begins with an instruction of five bytes that does nothing.
#include "burn.h"

void probed(void);
__asm__(
    ".text\n"
    ".globl probed\n"
    ".type probed, @function\n"
    "probed:\n"
    ".cfi_startproc\n"
    ".byte 0x0f, 0x1f, 0x44, 0, 0\n"
    "ret\n"
    ".cfi_endproc\n"
    ".size probed, . - probed\n");

NOIPA void calls(void) {
  probed();
  KEEP_FRAME();
}

int main(void) {
  long count = 0;
  while (count++ % 1024 || cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) < 2.0) calls();
  return 0;
}
