// Loads a BPF program, runs it for half a second, and unloads it; then another of the same code, which the kernel may put
// at the same place. When this ends, the kernel knows neither any more.
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

// As `bpf_prog_load`: 10,000 times round a loop.
static int load(const char *name) {
  struct bpf_insn code[] = {
      {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0},
      {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 6, .imm = 10000},
      {.code = BPF_ALU64 | BPF_ADD | BPF_X, .dst_reg = 0, .src_reg = 6},
      {.code = BPF_ALU64 | BPF_SUB | BPF_K, .dst_reg = 6, .imm = 1},
      {.code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = 6, .imm = 0, .off = -3},
      {.code = BPF_JMP | BPF_EXIT},
  };
  union bpf_attr attributes = {
      .prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
      .insns = (unsigned long)code,
      .insn_cnt = sizeof code / sizeof *code,
      .license = (unsigned long)"GPL",
  };
  strcpy(attributes.prog_name, name);
  return (int)bpf(BPF_PROG_LOAD, &attributes);
}

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
  char packet[64] = {0};
  while (cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) < until) {
    union bpf_attr attributes = {
        .test = {.prog_fd = (unsigned)program,
                 .data_in = (unsigned long)packet,
                 .data_size_in = sizeof packet,
                 .repeat = 100},
    };
    if (bpf(BPF_PROG_TEST_RUN, &attributes) != 0) {
      perror("the program can't be run");
      return 0;
    }
  }
  close(program);
  // The kernel takes it away some time after the last use.
  for (int i = 0; i < 1000 && is_listed(name); i++) {
  }
  return !is_listed(name);
}

int main(void) {
  return !(burn_in_kernel("burn_first", 0.5) && burn_in_kernel("burn_second", 1.2));
}
