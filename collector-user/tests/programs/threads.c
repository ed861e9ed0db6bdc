// 200 threads that live at the same time, each thread_main, work, burn_rounds for 8 ms of its own CPU time.
#include "burn.h"
#include <pthread.h>

enum { THREADS = 200 };
static pthread_barrier_t all_started;

NOIPA void work(void) {
  while (cpu_seconds(CLOCK_THREAD_CPUTIME_ID) < 0.008) burn_rounds(CHUNK);
  KEEP_FRAME();
}

NOIPA void *thread_main(void *unused) {
  pthread_barrier_wait(&all_started);
  work();
  KEEP_FRAME();
  return unused;
}

int main(void) {
  static pthread_t threads[THREADS];
  pthread_barrier_init(&all_started, 0, THREADS);
  for (int i = 0; i < THREADS; i++)
    if (pthread_create(&threads[i], 0, thread_main, 0) != 0) return 1;
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], 0);
  return 0;
}
