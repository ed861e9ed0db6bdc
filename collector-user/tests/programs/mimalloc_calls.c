// mimalloc_calls TOLD ROUNDS: allocates and frees by the functions that only mimalloc has, and writes to TOLD what it came to: blocks,
// bytes, blocks freed.
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// `mimalloc.h`
void *mi_malloc(size_t), *mi_malloc_small(size_t), *mi_zalloc(size_t), *mi_zalloc_small(size_t), *mi_mallocn(size_t, size_t);
void *mi_malloc_aligned(size_t, size_t), *mi_malloc_aligned_at(size_t, size_t, size_t), *mi_zalloc_aligned(size_t, size_t);
void *mi_zalloc_aligned_at(size_t, size_t, size_t), *mi_calloc_aligned(size_t, size_t, size_t);
void *mi_calloc_aligned_at(size_t, size_t, size_t, size_t), *mi_new(size_t), *mi_new_n(size_t, size_t), *mi_new_nothrow(size_t);
void *mi_new_aligned(size_t, size_t), *mi_new_aligned_nothrow(size_t, size_t), *mi_calloc(size_t, size_t);
void *mi_realloc(void *, size_t), *mi_reallocn(void *, size_t, size_t), *mi_reallocf(void *, size_t), *mi_rezalloc(void *, size_t);
void *mi_recalloc(void *, size_t, size_t), *mi_reallocarray(void *, size_t, size_t), *mi_realloc_aligned(void *, size_t, size_t);
void *mi_rezalloc_aligned(void *, size_t, size_t), *mi_recalloc_aligned(void *, size_t, size_t, size_t);
void *mi_new_realloc(void *, size_t), *mi_new_reallocn(void *, size_t, size_t), *mi_heap_get_default(void);
void *mi_heap_malloc(void *, size_t), *mi_heap_malloc_small(void *, size_t), *mi_heap_zalloc(void *, size_t);
void *mi_heap_calloc(void *, size_t, size_t), *mi_heap_mallocn(void *, size_t, size_t);
void *mi_heap_malloc_aligned(void *, size_t, size_t), *mi_heap_calloc_aligned(void *, size_t, size_t, size_t);
void *mi_heap_realloc(void *, void *, size_t), *mi_heap_recalloc(void *, void *, size_t, size_t);
void *mi_heap_reallocn(void *, void *, size_t, size_t), *mi_heap_realloc_aligned(void *, void *, size_t, size_t);
void *mi_memalign(size_t, size_t), *mi_aligned_alloc(size_t, size_t), *mi_valloc(size_t), *mi_pvalloc(size_t);
int mi_posix_memalign(void **, size_t, size_t);
void mi_free(void *), mi_cfree(void *), mi_free_size(void *, size_t), mi_free_aligned(void *, size_t);
void mi_free_size_aligned(void *, size_t, size_t);

static unsigned long blocks, bytes, freed;

static void *took(void *block, size_t size) {
    if (!block) _exit(1);
    *(volatile char *)block = 1;
    blocks += 1;
    bytes += size;
    return block;
}

static void *grew(void *block, size_t size) {
    freed += 1;
    return took(block, size);
}

// One of the ways to free a block.
static void drop(void *block, size_t size) {
    switch (freed++ % 5) {
        case 0: mi_free(block); break;
        case 1: mi_cfree(block); break;
        case 2: mi_free_size(block, size); break;
        case 3: mi_free_aligned(block, 16); break;
        default: mi_free_size_aligned(block, size, 16);
    }
}

static void once(void *block, size_t size) { drop(took(block, size), size); }

static void allocates(void) {
    once(mi_malloc(100), 100);
    once(mi_malloc_small(96), 96);
    once(mi_zalloc(104), 104);
    once(mi_zalloc_small(88), 88);
    once(mi_mallocn(3, 40), 120);
    once(mi_calloc(5, 40), 200);
    once(mi_malloc_aligned(112, 64), 112);
    once(mi_malloc_aligned_at(112, 64, 8), 112);
    once(mi_zalloc_aligned(128, 64), 128);
    once(mi_zalloc_aligned_at(128, 64, 8), 128);
    once(mi_calloc_aligned(3, 50, 32), 150);
    once(mi_calloc_aligned_at(3, 50, 32, 8), 150);
    once(mi_new(70), 70);
    once(mi_new_n(7, 20), 140);
    once(mi_new_nothrow(80), 80);
    once(mi_new_aligned(160, 128), 160);
    once(mi_new_aligned_nothrow(160, 128), 160);
    once(mi_memalign(64, 240), 240);
    once(mi_aligned_alloc(64, 256), 256);
    once(mi_valloc(300), 300);
    once(mi_pvalloc(4096), 4096);
    void *block = NULL;
    if (mi_posix_memalign(&block, 64, 320)) _exit(1);
    once(block, 320);
}

static void allocates_in_heap(void *heap) {
    once(mi_heap_malloc(heap, 100), 100);
    once(mi_heap_malloc_small(heap, 96), 96);
    once(mi_heap_zalloc(heap, 104), 104);
    once(mi_heap_calloc(heap, 5, 40), 200);
    once(mi_heap_mallocn(heap, 3, 40), 120);
    once(mi_heap_malloc_aligned(heap, 112, 64), 112);
    once(mi_heap_calloc_aligned(heap, 3, 50, 32), 150);
}

static void reallocates(void *heap) {
    void *block = took(mi_realloc(NULL, 10), 10);
    block = grew(mi_realloc(block, 400), 400);
    block = grew(mi_reallocn(block, 10, 50), 500);
    block = grew(mi_reallocf(block, 600), 600);
    block = grew(mi_reallocarray(block, 10, 70), 700);
    block = grew(mi_new_realloc(block, 800), 800);
    block = grew(mi_new_reallocn(block, 9, 100), 900);
    block = grew(mi_realloc_aligned(block, 1000, 16), 1000);
    block = grew(mi_heap_realloc(heap, block, 1100), 1100);
    block = grew(mi_heap_reallocn(heap, block, 12, 100), 1200);
    block = grew(mi_heap_realloc_aligned(heap, block, 1300, 16), 1300);
    drop(block, 1300);
    block = took(mi_rezalloc(NULL, 24), 24);
    block = grew(mi_rezalloc(block, 240), 240);
    block = grew(mi_recalloc(block, 5, 50), 250);
    block = grew(mi_heap_recalloc(heap, block, 5, 60), 300);
    block = grew(mi_rezalloc_aligned(block, 350, 16), 350);
    block = grew(mi_recalloc_aligned(block, 8, 50, 16), 400);
    drop(block, 400);
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    void *heap = mi_heap_get_default();
    for (int rounds = atoi(argv[2]); rounds > 0; rounds--) {
        allocates();
        allocates_in_heap(heap);
        reallocates(heap);
    }
    char text[96];
    int length = snprintf(text, sizeof text, "%lu %lu %lu\n", blocks, bytes, freed);
    int told = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0644);
    return write(told, text, length) != length;
}
