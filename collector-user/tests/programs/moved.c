// main, work, burn_moved for a second of CPU time: the latter in a second mapping of this file, which was made somewhere
// else and moved. With SHARED another process made it, which has the memory of this one and is none of its threads.
#define _GNU_SOURCE
#include "burn.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096 };

typedef void burn(unsigned long rounds);

// On a page from its beginning, and independent of where that is.
NOIPA __attribute__((aligned(PAGE))) void burn_moved(unsigned long rounds) {
  unsigned long x = (unsigned long)88172645463325252ULL;
  for (unsigned long i = 0; i < rounds; i++) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    __asm__ volatile("" : "+r"(x));
  }
}

// Where the linker puts the file's first byte; code is as far from it in memory as it is in the file.
extern const char __ehdr_start[];

static void *map_again(void) {
  int file = open("/proc/self/exe", O_RDONLY);
  off_t offset = (const char *)burn_moved - __ehdr_start;
  return mmap(0, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, offset);
}

NOIPA void work(burn *moved) {
  while (cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) < 1.0) moved(CHUNK);
  KEEP_FRAME();
}

#ifdef SHARED
static void *volatile mapped = MAP_FAILED;

static void *map_untold(void) {
  pid_t child = vfork();
  if (child == 0) {
    mapped = map_again();
    _exit(0);
  }
  if (child < 0 || waitpid(child, 0, 0) != child) return MAP_FAILED;
  return mapped;
}
#else
static void *map_untold(void) {
  void *from = map_again();
  void *to = mmap(0, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (from == MAP_FAILED || to == MAP_FAILED) return MAP_FAILED;
  return mremap(from, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to);
}
#endif

int main(void) {
  void *moved = map_untold();
  if (moved == MAP_FAILED) {
    perror("nothing is mapped");
    return 1;
  }
  work((burn *)moved);
  return 0;
}
