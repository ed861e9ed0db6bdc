// Writes to 2,000 pages of fresh memory, one after the other, in `touch_pages`.
#include "burn.h"
#include <stdlib.h>
#include <sys/mman.h>

NOIPA void touch_pages(char *memory) {
  for (int page = 0; page < 2000; page++) memory[page * 4096L] = 1;
  KEEP_FRAME();
}

int main(void) {
  char *memory = mmap(0, 2000 * 4096L, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  // One page at a time, whatever the machine does by itself.
  madvise(memory, 2000 * 4096L, MADV_NOHUGEPAGE);
  touch_pages(memory);
  return 0;
}
