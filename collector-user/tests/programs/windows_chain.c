// A program for Windows that burns time at the end of known chains, in its first thread and in another, for so many seconds as its
// argument says. It writes a line when it begins.
#include <stdio.h>
#include <stdlib.h>
#include <windows.h>

#define CALLED __attribute__((noinline, noclone))

static volatile unsigned long long sink;

CALLED unsigned long long spin(unsigned long long rounds) {
  unsigned long long x = rounds;
  for (unsigned long long i = 0; i < rounds; i++) x = x * 6364136223846793005ull + 1;
  return x;
}

// A frame that is larger than what one instruction may reserve without touching it.
CALLED unsigned long long third(unsigned long long rounds) {
  volatile char room[9000];
  room[rounds % sizeof room] = 1;
  return spin(rounds) + room[rounds % sizeof room];
}

// Registers that are saved across the call.
CALLED unsigned long long second(unsigned long long rounds, unsigned long long a, unsigned long long b) {
  unsigned long long x = third(rounds + a);
  return third(rounds - b) * (a + 3) + x * b;
}

CALLED unsigned long long first(unsigned long long rounds) { return second(rounds + 1, sink & 1, sink & 3) ^ sink; }

CALLED unsigned long long other(unsigned long long rounds) { return third(rounds) * 3 + sink; }

static DWORD end;

static DWORD WINAPI worker(void *unused) {
  (void)unused;
  while ((LONG)(GetTickCount() - end) < 0) sink = other(3000000) + 1;
  return 0;
}

int main(int count, char **arguments) {
  end = GetTickCount() + 1000 * (count > 1 ? atoi(arguments[1]) : 2);
  puts("begins");
  fflush(stdout);
  HANDLE thread = CreateThread(NULL, 0, worker, NULL, 0, NULL);
  while ((LONG)(GetTickCount() - end) < 0) sink = first(3000000) + 1;
  WaitForSingleObject(thread, INFINITE);
  return 0;
}
