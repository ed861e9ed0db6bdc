// 32-bit code in a 64-bit process, to and fro through the code segments that Linux has for both: half a second of CPU time.
#include "burn.h"

// Where both kinds of code have their stack pointer.
__attribute__((used)) static char low_stack[1 << 16];
__attribute__((used)) static void *kept;

NOIPA void gate(void) {
  __asm__ volatile(
      "mov %%rsp, kept\n"
      "mov $low_stack + 0x8000, %%rsp\n"
      "pushq $0x23\n"
      "pushq $1f\n"
      "lretq\n"
      ".code32\n"
      "1: mov $1000000, %%ecx\n"
      "2: dec %%ecx\n"
      "jnz 2b\n"
      "ljmp $0x33, $3f\n"
      ".code64\n"
      "3: mov kept, %%rsp\n" ::: "rcx", "memory", "cc");
}

int main(void) {
  while (cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) < 0.5) gate();
  return 0;
}
