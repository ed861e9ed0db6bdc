// Burns CPU time in a function of its own, so that every program has the same, known leaf.
#pragma once
#include <time.h>

// Stops the compiler from turning the call before it into a jump.
#define KEEP_FRAME() __asm__ volatile("" ::: "memory")

#ifdef __cplusplus
#define NOIPA __attribute__((noipa, noinline))
extern "C"
#else
#define NOIPA __attribute__((noipa))
#endif
NOIPA void burn_rounds(unsigned long rounds) {
  unsigned long x = (unsigned long)88172645463325252ULL;
  for (unsigned long i = 0; i < rounds; i++) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    __asm__ volatile("" : "+r"(x));
  }
}

// CPU time of this thread, or of the process.
static inline double cpu_seconds(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// A round takes about a nanosecond, so the clock is asked about every 200 microseconds.
enum { CHUNK = 200000 };
