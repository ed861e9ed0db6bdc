/* Functions with all kinds of frames that compilers make for Windows. Nothing is imported: it runs without Windows. */
#define NOINLINE __attribute__((noinline))
typedef long long word;

static volatile word sink;

static NOINLINE word leaf(word a) { return a * 3 + sink; }

static NOINLINE word small(word a) { return leaf(a) + 1; }

static NOINLINE word many(word a, word b, word c, word d, word e, word f) {
    word x = leaf(a), y = leaf(b), z = leaf(c), u = leaf(d), v = leaf(e), w = leaf(f);
    for (word i = 0; i < 2; i++) x += small(y + z) ^ small(u + v) ^ small(w + i);
    return x + y * z + u * v + w;
}

static NOINLINE word block(word a) {
    volatile char bytes[600];
    bytes[a & 511] = (char)a;
    return small(a) + bytes[a & 511];
}

static NOINLINE word large(word a) {
    volatile char bytes[9000];
    bytes[a & 4095] = (char)a;
    return small(a) + block(a) + bytes[a & 4095];
}

static NOINLINE word dynamic(word a, word b) {
    volatile char *bytes = __builtin_alloca((a & 63) + 16);
    bytes[a & 15] = (char)b;
    word x = many(a, b, a, b, a, b);
    return x + bytes[a & 15] + small(x);
}

static NOINLINE word realigned(word a) {
    volatile _Alignas(64) char bytes[128];
    bytes[a & 127] = (char)a;
    return small(a) + bytes[a & 127] + leaf(a);
}

static NOINLINE word vectors(double a, double b) {
    double x = a + sink, y = b + sink, z = a * b, u = x * y, v = z + u, w = x - v;
    word sum = 0;
    for (word i = 0; i < 2; i++) sum += leaf(i + (word)(x + y + z + u + v + w));
    return sum + (word)(x * y + z * u + v * w);
}

static NOINLINE word variadic(word count, ...) {
    __builtin_va_list list;
    word sum = 0;
    __builtin_va_start(list, count);
    for (word i = 0; i < count; i++) sum += small(__builtin_va_arg(list, word));
    __builtin_va_end(list);
    return sum;
}

static NOINLINE word recursive(word depth) { return depth == 0 ? leaf(1) : recursive(depth - 1) * 2 + leaf(depth); }

static NOINLINE word tail(word a) {
    word x = small(a) + leaf(a);
    return many(x, a, x, a, x, a);
}
static NOINLINE word tail_direct(word a) { return a & 1 ? small(a + 2) : block(a); }

static word (*volatile chosen)(word) = small;
static NOINLINE word tail_indirect(word a) {
    word x = leaf(a);
    return chosen(x);
}

static NOINLINE word choose(word a) {
    switch (a) {
    case 0: return small(a);
    case 1: return leaf(a) + block(a);
    case 2: return recursive(a);
    case 3: return chosen(a) + 1;
    case 4: return tail(a);
    case 5: return variadic(3, a, a, a);
    default: return tail_indirect(a);
    }
}

static NOINLINE word early(word a) {
    if (a == 0) return leaf(a);
    if (a == 1) {
        word x = small(a) + 1;
        if (x & 1) return x;
        return x + block(x);
    }
    word y = leaf(a);
    return many(a, y, a, y, a, y);
}

word shapes(word a);

word entry(word a) {
    word sum = small(a) + many(1, 2, 3, 4, 5, 6) + block(a) + large(a) + dynamic(a, 2) + realigned(a);
    sum += vectors(1.5, 2.5) + variadic(4, a, a, a, a) + recursive(5) + tail(a) + tail_direct(a) + tail_direct(a + 1);
    sum += tail_indirect(a);
    for (word i = 0; i < 7; i++) sum += choose(i);
    for (word i = 0; i < 3; i++) sum += early(i);
    return sum + shapes(a);
}
