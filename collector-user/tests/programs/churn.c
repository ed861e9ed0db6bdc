// A thread waits for a line and burns a second of CPU time; meanwhile, and before, the main thread starts threads that end
// at once, one after the other.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "burn.h"

static atomic_int done;

static void *burner(void *unused) {
  getchar();
  while (cpu_seconds(CLOCK_THREAD_CPUTIME_ID) < 1.0) burn_rounds(CHUNK);
  done = 1;
  return unused;
}

static void *nothing(void *unused) { return unused; }

int main(void) {
  pthread_t burning, passing;
  pthread_create(&burning, NULL, burner, NULL);
  for (unsigned long threads = 0; !done; threads++) {
    pthread_create(&passing, NULL, nothing, NULL);
    pthread_join(passing, NULL);
    if (threads == 100) {
      puts("ready");
      fflush(stdout);
    }
  }
  return 0;
}
