// A thread: thread_main, split, work, spin, burn_rounds: half a second of CPU time with a page of split's frame that can
// only be read, so that its stack is three mappings, and half a second after they have become one again.
#include "burn.h"
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

NOIPA void spin(double until) {
  while (cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) < until) burn_rounds(CHUNK);
  KEEP_FRAME();
}

// What a stack was read up to must not have changed when the rest is read: it is in here and in split then.
NOIPA void work(double until) {
  spin(until);
  KEEP_FRAME();
}

NOIPA int split(void) {
  volatile char room[4 * PAGE];
  void *page = (void *)(((uintptr_t)room + 2 * PAGE) / PAGE * PAGE);
  // One call for both.
  for (volatile int whole = 0; whole <= 1; whole++) {
    if (mprotect(page, PAGE, whole ? PROT_READ | PROT_WRITE : PROT_READ) != 0) return 0;
    work(whole ? 1.0 : 0.5);
  }
  room[0] = 1;
  return 1;
}

NOIPA void *thread_main(void *failed) {
  *(int *)failed = !split();
  KEEP_FRAME();
  return failed;
}

int main(void) {
  pthread_t thread;
  int failed = 1;
  if (pthread_create(&thread, 0, thread_main, &failed) != 0 || pthread_join(thread, 0) != 0) return 1;
  return failed;
}
