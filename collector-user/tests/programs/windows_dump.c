// A program for Windows with two threads that wait at the end of known chains, of which it writes a minidump: `windows_dump FILE KIND HOW`.
// KIND are bits of `MINIDUMP_TYPE`. HOW is `other`, and a second process of the program writes it, or `fault`, and the first thread
// does when it has read from address 8 at the end of its chain, with the registers from then.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include <dbghelp.h>

#define CALLED __attribute__((noinline, noclone))

typedef unsigned long long word;

static HANDLE waits, ends;
static volatile word sink;
static char **arguments;

CALLED static int write_dump(const char *path, int kind, DWORD process, MINIDUMP_EXCEPTION_INFORMATION *exception) {
  HANDLE file = CreateFileA(path, GENERIC_READ | GENERIC_WRITE, 0, NULL, CREATE_ALWAYS, 0, NULL);
  HANDLE handle = OpenProcess(PROCESS_ALL_ACCESS, FALSE, process);
  BOOL written = MiniDumpWriteDump(handle, process, file, kind, exception, NULL, NULL);
  CloseHandle(file);
  return written ? 0 : 1;
}

// Where the threads wait, and where one reads what nobody may.
CALLED word wait_here(word x) {
  SetEvent(waits);
  WaitForSingleObject(ends, INFINITE);
  return x * 3 + sink;
}

CALLED word read_here(word x) { return *(volatile word *)x + sink; }

// A frame that is larger than what one instruction may reserve without touching it.
CALLED word roomy(word x) {
  volatile char room[9000];
  room[x % sizeof room] = 1;
  return wait_here(x + 1) + room[x % sizeof room];
}

// Registers that are saved across the call.
CALLED word keeper(word x, word a, word b) {
  word y = roomy(x + a);
  return roomy(x - b) * (a + 3) + y * b;
}

static DWORD WINAPI worker(void *unused) {
  (void)unused;
  sink = keeper(sink & 1, sink & 3, sink & 7) + 1;
  return 0;
}

// Another process of this program writes the dump, and ends with what came of it.
CALLED word ask_other(word x) {
  char line[2048];
  STARTUPINFOA start = {.cb = sizeof start};
  PROCESS_INFORMATION other;
  snprintf(line, sizeof line, "\"%s\" %s %s write %lu", arguments[0], arguments[1], arguments[2], GetCurrentProcessId());
  if (!CreateProcessA(NULL, line, NULL, NULL, FALSE, 0, NULL, NULL, &start, &other)) ExitProcess(1);
  WaitForSingleObject(other.hProcess, INFINITE);
  DWORD code = 1;
  GetExitCodeProcess(other.hProcess, &code);
  ExitProcess(code);
  return x + sink;
}

CALLED word at_end(word x) { return (strcmp(arguments[3], "fault") ? ask_other(x) : read_here(x & 8 ? x & 8 : 8)) + sink; }

CALLED word second(word x) { return at_end(x + 1) * 3 + sink; }

CALLED word first(word x) { return second(x + 1) ^ sink; }

static LONG WINAPI faulted(EXCEPTION_POINTERS *pointers) {
  MINIDUMP_EXCEPTION_INFORMATION exception = {GetCurrentThreadId(), pointers, FALSE};
  ExitProcess(write_dump(arguments[1], atoi(arguments[2]), GetCurrentProcessId(), &exception));
  return EXCEPTION_CONTINUE_SEARCH;
}

int main(int count, char **given) {
  arguments = given;
  if (count > 4) return write_dump(given[1], atoi(given[2]), atoi(given[4]), NULL);
  if (count < 4) return 2;
  waits = CreateEventA(NULL, FALSE, FALSE, NULL);
  ends = CreateEventA(NULL, FALSE, FALSE, NULL);
  AddVectoredExceptionHandler(1, faulted);
  CreateThread(NULL, 0, worker, NULL, 0, NULL);
  WaitForSingleObject(waits, INFINITE);
  sink = first(sink) + 1;
  return 0;
}
