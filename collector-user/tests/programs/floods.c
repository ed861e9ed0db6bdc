// Meets fresh pages, thousands at a time, of which it gives the memory back: three of four in `most_pages`, the others in
// `few_pages`, with 40 KiB of stack between them and `main`. Writes to the file of its first argument how many faults without
// reading from a disk the kernel counted for it meanwhile, and from its begin to its end. The second argument is how many
// thousand pages it meets, the third how many blocks of memory it asks for and frees.
#include "burn.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { PAGE = 4096, PAGES = 1000 };

NOIPA void most_pages(char *memory) {
  for (int page = 0; page < 3; page++) memory[page * PAGE] = 1;
  KEEP_FRAME();
}

NOIPA void few_pages(char *memory) {
  memory[0] = 1;
  KEEP_FRAME();
}

NOIPA int meet_pages(char *memory, long thousands) {
  volatile char room[40 << 10];
  for (unsigned at = 0; at < sizeof room; at += 512) room[at] = 1;
  for (long round = 0; round < thousands; round++) {
    for (int page = 0; page < PAGES; page += 4) {
      most_pages(memory + page * PAGE);
      few_pages(memory + (page + 3) * PAGE);
    }
    if (madvise(memory, PAGES * PAGE, MADV_DONTNEED)) return 1;
  }
  return room[0] - 1;
}

NOIPA int ask_for_blocks(long blocks) {
  for (long block = 0; block < blocks; block++) {
    void *memory = malloc(48);
    if (!memory) return 1;
    free(memory);
  }
  return 0;
}

int main(int count, char **arguments) {
  if (count != 4) return 2;
  char *memory = mmap(0, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  // One page at a time, whatever the machine does by itself.
  madvise(memory, PAGES * PAGE, MADV_NOHUGEPAGE);
  FILE *told = fopen(arguments[1], "w");
  if (!told) return 1;
  struct rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  if (meet_pages(memory, atol(arguments[2])) || ask_for_blocks(atol(arguments[3]))) return 1;
  getrusage(RUSAGE_SELF, &after);
  fprintf(told, "%ld %ld\n", after.ru_minflt - before.ru_minflt, after.ru_minflt);
  return fclose(told);
}
