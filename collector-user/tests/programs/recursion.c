// main, 51 frames of `recurse`, `leaf`, `burn_rounds`: a second of CPU time.
// With UNLINK_SELF it deletes its own file first.
#include "burn.h"
#include <unistd.h>

NOIPA void leaf(void) {
  while (cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) < 1.0) burn_rounds(CHUNK);
  KEEP_FRAME();
}

NOIPA void recurse(int depth) {
  if (depth == 0)
    leaf();
  else
    recurse(depth - 1);
  KEEP_FRAME();
}

int main(void) {
#ifdef UNLINK_SELF
  char path[4096];
  ssize_t len = readlink("/proc/self/exe", path, sizeof path - 1);
  if (len < 0) return 1;
  path[len] = 0;
  if (unlink(path) != 0) return 1;
#endif
  recurse(50);
  return 0;
}
