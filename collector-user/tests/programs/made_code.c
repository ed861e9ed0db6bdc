// Makes code at run time, tells of it as JIT compilers do, and runs it.
//
// `made_code map`: tells of it in a perf map. With `given`, that is another user's; with `twice`, the code is mapped once to be written to
// and once to be executed, as .NET does.
// `made_code dump FOLDER`: in a jitdump there. One place has first one code and then another, which is moved in the end, for
// half a second of CPU time each; the file `times` has when each began, by CLOCK_MONOTONIC.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
// mov %rdi, %rax; 1: dec %rax; jnz 1b; ret
static const uint8_t CODE[] = { 0x48, 0x89, 0xf8, 0x48, 0xff, 0xc8, 0x75, 0xfb, 0xc3 };
enum { LOOP = 3 };
#else
// mov x1, x0; 1: subs x1, x1, #1; b.ne 1b; ret
static const uint32_t CODE[] = { 0xaa0003e1, 0xf1000421, 0x54ffffe1, 0xd65f03c0 };
enum { LOOP = 4 };
#endif

static uint64_t at(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static uint64_t now(void) {
    return at(CLOCK_MONOTONIC);
}

static void run(uint8_t *code) {
    uint64_t end = at(CLOCK_PROCESS_CPUTIME_ID) + 500000000;
    while (at(CLOCK_PROCESS_CPUTIME_ID) < end)
        ((void (*)(uint64_t))code)(100000);
}

static void make(uint8_t *place) {
    memcpy(place, CODE, sizeof CODE);
    __builtin___clear_cache((char *)place, (char *)place + sizeof CODE);
}

static void write_map(const uint8_t *code, int is_given) {
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
    FILE *map = fopen(path, "w");
    uintptr_t start = (uintptr_t)code;
    fprintf(map, "%lx %zx older code\n0x%lX 0x%zX made code (a b)\n", start, sizeof CODE, start, sizeof CODE);
    fclose(map);
    if (is_given && chown(path, 65534, 65534) != 0)
        exit(3);
}

static FILE *dump;

static void put(const void *bytes, size_t size) {
    fwrite(bytes, size, 1, dump);
}

static void put_record(uint32_t id, uint32_t body) {
    uint32_t head[2] = { id, 16 + body };
    uint64_t time = now();
    put(head, sizeof head);
    put(&time, sizeof time);
}

static void put_ids(void) {
    uint32_t ids[2] = { getpid(), getpid() };
    put(ids, sizeof ids);
}

// Two lines: of the first instruction, and of the loop.
static void put_lines(const uint8_t *code, uint32_t line) {
    const char *files[2] = { "/src/made by.hand", "\xff" };
    uint64_t head[2] = { (uintptr_t)code, 2 };
    put_record(2, sizeof head + 2 * 16 + strlen(files[0]) + 1 + 2);
    put(head, sizeof head);
    for (int entry = 0; entry < 2; entry++) {
        uint64_t address = (uintptr_t)code + entry * LOOP;
        uint32_t place[2] = { line + entry, 7 };
        put(&address, sizeof address);
        put(place, sizeof place);
        put(files[entry], strlen(files[entry]) + 1);
    }
}

static void put_load(const uint8_t *code, uint64_t index, const char *name) {
    uint64_t start = (uintptr_t)code, fields[4] = { start, start, sizeof CODE, index };
    put_record(0, 8 + sizeof fields + strlen(name) + 1 + sizeof CODE);
    put_ids();
    put(fields, sizeof fields);
    put(name, strlen(name) + 1);
    put(CODE, sizeof CODE);
}

static void put_move(const uint8_t *from, const uint8_t *to, uint64_t index) {
    uint64_t fields[5] = { (uintptr_t)to, (uintptr_t)from, (uintptr_t)to, sizeof CODE, index };
    put_record(1, 8 + sizeof fields);
    put_ids();
    put(fields, sizeof fields);
}

static void open_dump(const char *folder) {
    char path[4096];
    snprintf(path, sizeof path, "%s/jit-%d.dump", folder, getpid());
    int fd = open(path, O_CREAT | O_RDWR | O_EXCL, 0600);
    if (mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
        exit(4);
    dump = fdopen(fd, "w");
    uint32_t head[6] = { 0x4a695444, 1, 40, 62, 0, getpid() };
    uint64_t tail[2] = { now(), 0 };
    put(head, sizeof head);
    put(tail, sizeof tail);
}

static void replace(uint8_t *code, const char *folder) {
    char path[4096];
    snprintf(path, sizeof path, "%s/times", folder);
    FILE *times = fopen(path, "w");
    open_dump(folder);
    make(code);
    put_lines(code, 10);
    put_load(code, 1, "first code");
    run(code);
    make(code);
    put_lines(code, 20);
    put_load(code, 2, "second code");
    fprintf(times, "%lu\n", (unsigned long)now());
    run(code);
    make(code + 2048);
    put_move(code, code + 2048, 2);
    fprintf(times, "%lu\n", (unsigned long)now());
    run(code + 2048);
    fclose(dump);
    fclose(times);
}

static uint8_t *map_twice(void) {
    int fd = memfd_create("doublemapper", 0);
    if (ftruncate(fd, 4096) != 0)
        exit(5);
    make(mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    return mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
}

int main(int count, char **words) {
    const char *how = count > 2 ? words[2] : "";
    uint8_t *code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED || count < 2)
        return 2;
    if (strcmp(words[1], "dump") == 0) {
        replace(code, words[2]);
        return 0;
    }
    if (strcmp(how, "twice") == 0)
        code = map_twice();
    else
        make(code);
    write_map(code, strcmp(how, "given") == 0);
    run(code);
    return 0;
}
