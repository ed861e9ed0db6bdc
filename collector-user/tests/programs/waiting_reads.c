// As many threads as it is told wait in a read of one pipe at once, each for a byte; then these are written.
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static int ends[2];

static void *waits(void *nothing) {
  char byte;
  if (read(ends[0], &byte, 1) != 1) abort();
  return nothing;
}

int main(int count, char **words) {
  int threads = count > 1 ? atoi(words[1]) : 0;
  pthread_t ids[1000];
  if (threads > 1000 || pipe(ends)) return 1;
  for (int i = 0; i < threads; i++) {
    if (pthread_create(&ids[i], NULL, waits, NULL)) return 1;
  }
  sleep(2);
  for (int i = 0; i < threads; i++) {
    if (write(ends[1], "", 1) != 1) return 1;
  }
  for (int i = 0; i < threads; i++) pthread_join(ids[i], NULL);
  return 0;
}
