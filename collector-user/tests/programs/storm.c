// Forks 2,000 children that burn a fifth of a millisecond each, 16 at a time.
#include "burn.h"
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
  int alive = 0;
  for (int i = 0; i < 2000; i++) {
    pid_t pid = fork();
    if (pid < 0) return 1;
    if (pid == 0) {
      burn_rounds(CHUNK);
      _exit(0);
    }
    if (++alive == 16) {
      wait(0);
      alive--;
    }
  }
  while (wait(0) > 0) {
  }
  return 0;
}
