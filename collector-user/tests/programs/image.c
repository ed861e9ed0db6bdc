// Maps a PE image as .NET's runtime does on Linux, from its file, and runs its first function for a second of CPU time.
// main, call, and the image's function.
#include "burn.h"
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

typedef unsigned long(__attribute__((ms_abi)) * Function)(unsigned long);

static uint32_t word(const unsigned char *at) {
  uint32_t value;
  memcpy(&value, at, sizeof value);
  return value;
}

NOIPA unsigned long call(Function function) {
  unsigned long result = function(100000);
  KEEP_FRAME();
  return result;
}

int main(int count, char **args) {
  int file = open(args[count - 1], O_RDONLY);
  unsigned char *mapped = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
  if (mapped == MAP_FAILED) return 2;
  unsigned char *header = mapped + word(mapped + 0x3c);
  unsigned char *section = header + 24 + (word(header + 20) & 0xffff);
  uint32_t start = word(header + 40) - word(section + 12) + word(section + 20);
  Function function = (Function)(mapped + start);
  unsigned long sum = 0;
  while (cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) < 1.0) sum += call(function);
  return sum == 0;
}
