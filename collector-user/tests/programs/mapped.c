// Reads the first byte of each page of a mapped file that is in no memory yet, in `read_pages`, and writes to the second file
// how many faults with and without reading from a disk the kernel counted for it meanwhile.
#include "burn.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

NOIPA int read_pages(const volatile char *memory, long size) {
  int sum = 0;
  for (long at = 0; at < size; at += 4096) sum += memory[at];
  KEEP_FRAME();
  return sum;
}

int main(int count, char **arguments) {
  if (count != 3) return 2;
  int file = open(arguments[1], O_RDWR);
  struct stat found;
  if (file < 0 || fstat(file, &found)) return 1;
  // What is written can be dropped.
  if (fsync(file) || posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED)) return 1;
  char *memory = mmap(0, found.st_size, PROT_READ, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) return 1;
  // No page is read before it is asked for.
  if (madvise(memory, found.st_size, MADV_RANDOM)) return 1;
  FILE *told = fopen(arguments[2], "w");
  if (!told) return 1;
  struct rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  int sum = read_pages(memory, found.st_size);
  getrusage(RUSAGE_SELF, &after);
  fprintf(told, "%ld %ld %d\n", after.ru_majflt - before.ru_majflt, after.ru_minflt - before.ru_minflt, sum);
  return fclose(told);
}
