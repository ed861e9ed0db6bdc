// main, make_process: 10,000 processes that share the memory, as posix_spawn makes them. Nothing was ever written to their
// stacks, so the pages of these are absent.
#define _GNU_SOURCE
#include "burn.h"
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define SIZE (64 << 10)

// As glibc's clone: no rules, and nothing on the stack.
long make(unsigned long flags, void *stack);
__asm__(".text\n"
        ".type make, @function\n"
        "make: mov $56, %eax\n"
        "  syscall\n"
        "  test %rax, %rax\n"
        "  jl 1f\n"
        "  je 2f\n"
        "1: ret\n"
        "2: xor %edi, %edi\n"
        "  mov $60, %eax\n"
        "  syscall\n"
        ".size make, . - make\n");

NOIPA int make_process(char *stack) {
  int pid = make(CLONE_VM | CLONE_VFORK | SIGCHLD, stack + SIZE / 2);
  int failed = pid < 0 || waitpid(pid, 0, 0) != pid;
  KEEP_FRAME();
  return failed;
}

int main(void) {
  char *stack = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (stack == MAP_FAILED) return 1;
  for (int i = 0; i < 10000; i++)
    if (make_process(stack)) return 1;
  return 0;
}
