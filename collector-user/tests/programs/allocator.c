// An allocator to be preloaded, whose functions call one another: what is asked for once must be counted once.
#include <stddef.h>
#include <string.h>

static char memory[64 << 20] __attribute__((aligned(64)));
static size_t used;

__attribute__((visibility("protected"), noinline)) void *malloc(size_t size) {
    if (size > sizeof memory) return NULL;
    size_t room = (size + 127) & ~63UL;
    size_t at = __atomic_fetch_add(&used, room, __ATOMIC_RELAXED);
    if (at + room > sizeof memory) return NULL;
    *(size_t *)(memory + at) = size;
    return memory + at + 64;
}

__attribute__((visibility("protected"), noinline)) void free(void *block) { __asm__ volatile("" ::"r"(block)); }

void *calloc(size_t count, size_t size) {
    void *block = malloc(count * size);
    return block ? memset(block, 0, count * size) : NULL;
}

void *realloc(void *block, size_t size) {
    void *larger = malloc(size);
    if (!block || !larger) return larger;
    size_t before = *(size_t *)((char *)block - 64);
    memcpy(larger, block, before < size ? before : size);
    free(block);
    return larger;
}

int posix_memalign(void **out, size_t alignment, size_t size) {
    (void)alignment;
    *out = malloc(size);
    return *out ? 0 : 12;
}

// The compiler jumps to it instead of calling it.
void *aligned_alloc(size_t alignment, size_t size) {
    (void)alignment;
    return malloc(size);
}

void *memalign(size_t alignment, size_t size) {
    (void)alignment;
    return malloc(size);
}
