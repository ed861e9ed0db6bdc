// Writes to pages of fresh memory, one after the other, in `touch_pages`: 2,000, or as many as the argument says.
#include "burn.h"
#include <stdlib.h>
#include <sys/mman.h>

NOIPA void touch_pages(char *memory, int pages) {
  for (int page = 0; page < pages; page++) memory[page * 4096L] = 1;
  KEEP_FRAME();
}

int main(int argc, char **argv) {
  int pages = argc > 1 ? atoi(argv[1]) : 2000;
  char *memory = mmap(0, pages * 4096L, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  // One page at a time, whatever the machine does by itself.
  madvise(memory, pages * 4096L, MADV_NOHUGEPAGE);
  touch_pages(memory, pages);
  return 0;
}
