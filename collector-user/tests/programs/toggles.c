// Makes a page executable and writable in turns, as compilers that allow no page to be both do: 200,000 times.
#include <sys/mman.h>

enum { PAGE = 4096, TIMES = 200000 };

int main(void) {
  char *page = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return 1;
  page[0] = 1;
  for (int i = 0; i < TIMES; i++)
    if (mprotect(page, PAGE, PROT_READ | PROT_EXEC) != 0 || mprotect(page, PAGE, PROT_READ | PROT_WRITE) != 0) return 1;
  return 0;
}
