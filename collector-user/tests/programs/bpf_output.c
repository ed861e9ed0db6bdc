// Events of a program in the kernel that is nobody's but this one's, put together by hand.
//
//   bpf_output serve KIND SIZE TRACEPOINT FOLDER   loads it, pins the map that it writes to as FOLDER/events, itself as
//                                                  FOLDER/program and a map of another type as FOLDER/table, and says
//                                                  "ready ID" with the map's number. For each line from stdin it says how many
//                                                  records it wrote so far and how many it could not; for a line "slots" it
//                                                  empties those of a map of type perf, and says how many were taken. At the end
//                                                  of stdin it takes everything away.
//   bpf_output call FIRST COUNT                    makes it write COUNT records, numbered from FIRST on, on all CPUs in turn.
//
// KIND is ring, of SIZE bytes, or perf. TRACEPOINT is the number of syscalls:sys_enter_getpgid.

#define _GNU_SOURCE
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

// Calls with such an argument are meant: no process has such a number.
#define MARK 0x5a
#define SHIFT 24

// What it writes: struct { u32 pid, tid; u64 number, ns; char comm[16]; }, which lies below the frame like this.
#define RECORD -48
#define RECORD_SIZE 40
#define KEY -52

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static int bpf(int command, union bpf_attr *attributes) {
  return syscall(SYS_bpf, command, attributes, sizeof *attributes);
}

static int map(int type, unsigned key, unsigned value, unsigned entries) {
  union bpf_attr attributes;
  memset(&attributes, 0, sizeof attributes);
  attributes.map_type = type;
  attributes.key_size = key;
  attributes.value_size = value;
  attributes.max_entries = entries;
  strcpy(attributes.map_name, "numbered");
  int fd = bpf(BPF_MAP_CREATE, &attributes);
  if (fd < 0) fail("map");
  return fd;
}

static void pin(int fd, const char *folder, const char *name, char path[4096]) {
  snprintf(path, 4096, "%s/%s", folder, name);
  union bpf_attr attributes;
  memset(&attributes, 0, sizeof attributes);
  attributes.pathname = (unsigned long)path;
  attributes.bpf_fd = fd;
  if (bpf(BPF_OBJ_PIN, &attributes) < 0) fail("pin");
}

static struct bpf_insn program[64];
static int length;

static int add(int code, int dst, int src, int off, int imm) {
  program[length] = (struct bpf_insn){.code = code, .dst_reg = dst, .src_reg = src, .off = off, .imm = imm};
  return length++;
}

static void copy(int dst, int src) { add(BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0); }
static void number(int dst, int value) { add(BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, value); }
static void call(int helper) { add(BPF_JMP | BPF_CALL, 0, 0, 0, helper); }
static void below(int dst, int offset) {
  copy(dst, 10);
  add(BPF_ALU64 | BPF_ADD | BPF_K, dst, 0, 0, offset);
}
static void load_map(int dst, int fd) {
  add(BPF_LD | BPF_DW | BPF_IMM, dst, BPF_PSEUDO_MAP_FD, 0, fd);
  add(0, 0, 0, 0, 0);
}
static void land(int jump) { program[jump].off = length - jump - 1; }

static int load(int output, int is_ring, int counts) {
  copy(6, 1);
  // if (argument >> SHIFT != MARK) return 0;
  add(BPF_LDX | BPF_MEM | BPF_DW, 7, 6, 16, 0);
  copy(1, 7);
  add(BPF_ALU64 | BPF_RSH | BPF_K, 1, 0, 0, SHIFT);
  int others = add(BPF_JMP | BPF_JNE | BPF_K, 1, 0, 0, MARK);
  // The process is in the upper half, the thread in the lower.
  call(BPF_FUNC_get_current_pid_tgid);
  copy(1, 0);
  add(BPF_ALU64 | BPF_RSH | BPF_K, 1, 0, 0, 32);
  add(BPF_STX | BPF_MEM | BPF_W, 10, 1, RECORD, 0);
  add(BPF_STX | BPF_MEM | BPF_W, 10, 0, RECORD + 4, 0);
  add(BPF_ALU64 | BPF_AND | BPF_K, 7, 0, 0, (1 << SHIFT) - 1);
  add(BPF_STX | BPF_MEM | BPF_DW, 10, 7, RECORD + 8, 0);
  call(BPF_FUNC_ktime_get_ns);
  add(BPF_STX | BPF_MEM | BPF_DW, 10, 0, RECORD + 16, 0);
  below(1, RECORD + 24);
  number(2, 16);
  call(BPF_FUNC_get_current_comm);
  if (is_ring) {
    load_map(1, output);
    below(2, RECORD);
    number(3, RECORD_SIZE);
    number(4, 0);
    call(BPF_FUNC_ringbuf_output);
  } else {
    copy(1, 6);
    load_map(2, output);
    // BPF_F_CURRENT_CPU
    add(BPF_ALU | BPF_MOV | BPF_K, 3, 0, 0, -1);
    below(4, RECORD);
    number(5, RECORD_SIZE);
    call(BPF_FUNC_perf_event_output);
  }
  // counts[failed]++
  number(1, 0);
  int wrote = add(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 0, 0);
  number(1, 1);
  land(wrote);
  add(BPF_STX | BPF_MEM | BPF_W, 10, 1, KEY, 0);
  load_map(1, counts);
  below(2, KEY);
  call(BPF_FUNC_map_lookup_elem);
  int none = add(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 0, 0);
  number(1, 1);
  add(BPF_STX | BPF_ATOMIC | BPF_DW, 0, 1, 0, BPF_ADD);
  land(none);
  land(others);
  number(0, 0);
  add(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);

  static char log[1 << 16];
  union bpf_attr attributes;
  memset(&attributes, 0, sizeof attributes);
  attributes.prog_type = BPF_PROG_TYPE_TRACEPOINT;
  attributes.insns = (unsigned long)program;
  attributes.insn_cnt = length;
  attributes.license = (unsigned long)"GPL";
  attributes.log_buf = (unsigned long)log;
  attributes.log_size = sizeof log;
  attributes.log_level = 1;
  int fd = bpf(BPF_PROG_LOAD, &attributes);
  if (fd < 0) {
    fputs(log, stderr);
    fail("program");
  }
  return fd;
}

static unsigned long count(int counts, unsigned key) {
  unsigned long value = 0;
  union bpf_attr attributes;
  memset(&attributes, 0, sizeof attributes);
  attributes.map_fd = counts;
  attributes.key = (unsigned long)&key;
  attributes.value = (unsigned long)&value;
  if (bpf(BPF_MAP_LOOKUP_ELEM, &attributes) < 0) fail("count");
  return value;
}

static int empty(int output) {
  int taken = 0;
  for (unsigned cpu = 0; cpu < sysconf(_SC_NPROCESSORS_CONF); cpu++) {
    union bpf_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.map_fd = output;
    attributes.key = (unsigned long)&cpu;
    taken += bpf(BPF_MAP_DELETE_ELEM, &attributes) == 0;
  }
  return taken;
}

static unsigned id_of(int fd) {
  struct bpf_map_info info;
  memset(&info, 0, sizeof info);
  union bpf_attr attributes;
  memset(&attributes, 0, sizeof attributes);
  attributes.info.bpf_fd = fd;
  attributes.info.info_len = sizeof info;
  attributes.info.info = (unsigned long)&info;
  if (bpf(BPF_OBJ_GET_INFO_BY_FD, &attributes) < 0) fail("info");
  return info.id;
}

static int serve(const char *kind, unsigned size, int tracepoint, const char *folder) {
  static char paths[3][4096];
  int is_ring = !strcmp(kind, "ring");
  int output = is_ring ? map(BPF_MAP_TYPE_RINGBUF, 0, 0, size)
                         : map(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, sysconf(_SC_NPROCESSORS_CONF));
  int counts = map(BPF_MAP_TYPE_ARRAY, 4, 8, 2);
  int loaded = load(output, is_ring, counts);
  pin(output, folder, "events", paths[0]);
  pin(loaded, folder, "program", paths[1]);
  pin(counts, folder, "table", paths[2]);
  struct perf_event_attr attributes;
  memset(&attributes, 0, sizeof attributes);
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_TRACEPOINT;
  attributes.config = tracepoint;
  attributes.sample_period = 1;
  attributes.wakeup_events = 1;
  // It runs on all CPUs, whichever the event is of.
  int event = syscall(SYS_perf_event_open, &attributes, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
  if (event < 0 || ioctl(event, PERF_EVENT_IOC_SET_BPF, loaded) < 0) fail("attach");
  printf("ready %u\n", id_of(output));
  fflush(stdout);
  char line[16];
  while (fgets(line, sizeof line, stdin)) {
    if (!strcmp(line, "slots\n")) {
      printf("%d\n", empty(output));
      fflush(stdout);
      continue;
    }
    printf("%lu %lu\n", count(counts, 0), count(counts, 1));
    fflush(stdout);
  }
  for (int path = 0; path < 3; path++) unlink(paths[path]);
  return 0;
}

static int make_calls(long first, long calls) {
  cpu_set_t cpus, one;
  if (sched_getaffinity(0, sizeof cpus, &cpus) < 0) fail("affinity");
  int cpu = 0;
  for (long index = 0; index < calls; index++) {
    if (index % 50 == 0) {
      do cpu = (cpu + 1) % CPU_SETSIZE;
      while (!CPU_ISSET(cpu, &cpus));
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      if (sched_setaffinity(0, sizeof one, &one) < 0) fail("affinity");
    }
    syscall(SYS_getpgid, (long)MARK << SHIFT | (first + index));
  }
  return 0;
}

int main(int argc, char **argv) {
  if (argc == 6 && !strcmp(argv[1], "serve")) return serve(argv[2], atoi(argv[3]), atoi(argv[4]), argv[5]);
  if (argc == 4 && !strcmp(argv[1], "call")) return make_calls(atol(argv[2]), atol(argv[3]));
  fputs("usage: bpf_output serve KIND SIZE TRACEPOINT FOLDER | call FIRST COUNT\n", stderr);
  return 2;
}
