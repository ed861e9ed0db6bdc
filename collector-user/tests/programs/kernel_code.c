// Loads a BPF program, runs it for half a second, and unloads it; then another of the same code, which the kernel may put
// at the same place. When this ends, the kernel knows neither any more.
// With BRIEF it does so with three, in turns, each for some milliseconds, while another one stays.
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "burn.h"

static long bpf(int command, union bpf_attr *attributes) {
  return syscall(SYS_bpf, command, attributes, sizeof *attributes);
}

enum { ADDITIONS = 4000 };

// As `bpf_prog_load`: additions one after the other, since a loop is gone round by the kernel's check as well.
static int load(const char *name) {
  struct bpf_insn code[ADDITIONS + 2] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K}};
  for (int i = 1; i <= ADDITIONS; i++) code[i].code = BPF_ALU64 | BPF_ADD | BPF_K, code[i].imm = i;
  code[ADDITIONS + 1].code = BPF_JMP | BPF_EXIT;
  union bpf_attr attributes = {
      .prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
      .insns = (unsigned long)code,
      .insn_cnt = sizeof code / sizeof *code,
      .license = (unsigned long)"GPL",
  };
  strcpy(attributes.prog_name, name);
  return (int)bpf(BPF_PROG_LOAD, &attributes);
}

static int run(int program) {
  char packet[64] = {0};
  union bpf_attr attributes = {
      .test = {.prog_fd = (unsigned)program,
               .data_in = (unsigned long)packet,
               .data_size_in = sizeof packet,
               .repeat = 1000},
  };
  if (bpf(BPF_PROG_TEST_RUN, &attributes) == 0) return 1;
  perror("the program can't be run");
  return 0;
}

#ifdef BRIEF
int main(void) {
  const char *names[] = {"brief_first", "brief_second", "brief_third"};
  if (load("brief_held") < 0) return 1;
  while (cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) < 1.5)
    for (int i = 0; i < 3; i++) {
      int program = load(names[i]);
      if (program < 0 || !run(program) || !run(program)) return 1;
      close(program);
    }
  return 0;
}
#else
static int is_listed(const char *name) {
  FILE *symbols = fopen("/proc/kallsyms", "r");
  char line[1024];
  int found = 0;
  while (!found && fgets(line, sizeof line, symbols)) found = strstr(line, name) != NULL;
  fclose(symbols);
  return found;
}

static int burn_in_kernel(const char *name, double until) {
  int program = load(name);
  if (program < 0 || !is_listed(name)) {
    perror("no program is loaded");
    return 0;
  }
  while (cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) < until)
    if (!run(program)) return 0;
  close(program);
  // The kernel takes it away some time after the last use.
  for (int i = 0; i < 1000 && is_listed(name); i++) {
  }
  return !is_listed(name);
}

int main(void) {
  return !(burn_in_kernel("burn_first", 0.5) && burn_in_kernel("burn_second", 1.2));
}
#endif
