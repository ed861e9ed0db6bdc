/* Maps a PE image as Windows would, at the address it prefers, so that nothing needs relocation. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static uint64_t image_start, image_end;

static void *field(char *at, size_t offset) { return at + offset; }
static uint32_t u32(char *at, size_t offset) { return *(uint32_t *)field(at, offset); }
static uint16_t u16(char *at, size_t offset) { return *(uint16_t *)field(at, offset); }

/* Returns the entry point. */
static void *load(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) exit(2);
    fseek(file, 0, SEEK_END);
    long length = ftell(file);
    rewind(file);
    char *bytes = malloc(length);
    if (fread(bytes, 1, length, file) != (size_t)length) exit(2);
    fclose(file);
    char *coff = bytes + u32(bytes, 0x3c) + 4, *optional = coff + 20;
    uint64_t base = *(uint64_t *)field(optional, 24);
    uint32_t size = u32(optional, 56);
    int writable = PROT_READ | PROT_WRITE | PROT_EXEC;
    char *image = mmap((void *)base, size, writable, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (image != (char *)base) exit(3);
    char *section = optional + u16(coff, 16);
    for (int i = 0; i < u16(coff, 2); i++, section += 40) {
        uint32_t in_memory = u32(section, 8), in_file = u32(section, 16);
        memcpy(image + u32(section, 12), bytes + u32(section, 20), in_file < in_memory ? in_file : in_memory);
    }
    image_start = base;
    image_end = base + size;
    __builtin___clear_cache(image, image + size);
    return image + u32(optional, 16);
}
