// A 32-bit program without a library: burns about half a second and exits.
static void burn(void) {
  unsigned x = 2463534242U;
  for (unsigned i = 0; i < 400000000U; i++) {
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    __asm__ volatile("" : "+r"(x));
  }
}

__attribute__((noreturn)) void _start(void) {
  burn();
  __asm__ volatile("int $0x80" ::"a"(1), "b"(0));
  __builtin_unreachable();
}
