// main, enter, [another stack:] on_stack, work, burn_rounds for 0.3 s of CPU time on a stack of 16 KB; then on one of 48 KB
// in its place, on_stack, descend with 38 KB, work, burn_rounds for a second.
#define _GNU_SOURCE
#include "burn.h"
#include <sys/mman.h>
#include <ucontext.h>

enum { SMALL = 16 << 10, LARGE = 48 << 10, ROOM = 38 << 10 };
static ucontext_t back, there;

NOIPA void work(double until) {
  while (cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) < until) burn_rounds(CHUNK);
  KEEP_FRAME();
}

NOIPA void descend(void) {
  volatile char room[ROOM];
  room[0] = 1;
  work(1.3);
  room[0] = 2;
}

NOIPA void on_stack(int is_large) {
  if (is_large)
    descend();
  else
    work(0.3);
  KEEP_FRAME();
}

static void *place;

NOIPA int enter(int size, int is_large) {
  place = mmap(place, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (is_large ? MAP_FIXED : 0), -1, 0);
  if (place == MAP_FAILED || getcontext(&there) != 0) return 0;
  there.uc_stack.ss_sp = place;
  there.uc_stack.ss_size = size;
  there.uc_link = &back;
  makecontext(&there, (void (*)(void))on_stack, 1, is_large);
  return swapcontext(&back, &there) == 0;
}

int main(void) {
  // Where both have room: nothing else may lie behind the small one.
  place = mmap(0, LARGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED || munmap(place, LARGE) != 0) return 1;
  return !(enter(SMALL, 0) && munmap(place, SMALL) == 0 && enter(LARGE, 1));
}
