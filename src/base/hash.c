/* See hash.h. Words are read as little-endian numbers, on any machine. */
#include "base/hash.h"
#include <string.h>

static uint64_t read_64(const unsigned char *p)
{
    uint64_t v = 0;
    for (int i = 7; i >= 0; i--) v = v << 8 | p[i];
    return v;
}

static uint64_t read_32(const unsigned char *p)
{
    return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24;
}

/* ---- Fingerprint64: farmhashna of FarmHash 1.1 ----------------------------------------------- */

static const uint64_t k0 = 0xc3a5c85c97cb3127, k1 = 0xb492b66fbe98f273, k2 = 0x9ae16a3b2f90404f;

static uint64_t right(uint64_t v, int n)
{
    return v >> n | v << (64 - n);
}

static uint64_t mix(uint64_t v)
{
    return v ^ v >> 47;
}

static uint64_t join(uint64_t u, uint64_t v, uint64_t factor)
{
    const uint64_t a = mix((u ^ v) * factor);
    return mix((v ^ a) * factor) * factor;
}

static uint64_t hash_to_16(const unsigned char *p, size_t n)
{
    const uint64_t factor = k2 + n * 2;
    if (n >= 8) {
        const uint64_t a = read_64(p) + k2, b = read_64(p + n - 8);
        return join(right(b, 37) * factor + a, (right(a, 25) + b) * factor, factor);
    }
    if (n >= 4) return join(n + (read_32(p) << 3), read_32(p + n - 4), factor);
    if (!n) return k2;
    const uint32_t y = p[0] + ((uint32_t)p[n / 2] << 8);
    const uint32_t z = (uint32_t)n + ((uint32_t)p[n - 1] << 2);
    return mix(y * k2 ^ z * k0) * k2;
}

static uint64_t hash_to_32(const unsigned char *p, size_t n)
{
    const uint64_t factor = k2 + n * 2;
    const uint64_t a = read_64(p) * k1, b = read_64(p + 8);
    const uint64_t c = read_64(p + n - 8) * factor, d = read_64(p + n - 16) * k2;
    return join(right(a + b, 43) + right(c, 30) + d, a + right(b + k2, 18) + c, factor);
}

static uint64_t hash_to_64(const unsigned char *p, size_t n)
{
    const uint64_t factor = k2 + n * 2;
    const uint64_t a = read_64(p) * k2, b = read_64(p + 8);
    const uint64_t c = read_64(p + n - 8) * factor, d = read_64(p + n - 16) * k2;
    const uint64_t y = right(a + b, 43) + right(c, 30) + d;
    const uint64_t z = join(y, a + right(b + k2, 18) + c, factor);
    const uint64_t e = read_64(p + 16) * factor, f = read_64(p + 24);
    const uint64_t g = (y + read_64(p + n - 32)) * factor, h = (z + read_64(p + n - 24)) * factor;
    return join(right(e + f, 43) + right(g, 30) + h, e + right(f + a, 18) + g, factor);
}

typedef struct pair {
    uint64_t a, b;
} pair;

static pair fold_32(const unsigned char *p, uint64_t a, uint64_t b)
{
    const uint64_t w = read_64(p), z = read_64(p + 24);
    a += w;
    b = right(b + a + z, 21);
    const uint64_t c = a;
    a += read_64(p + 8) + read_64(p + 16);
    b += right(a, 44);
    return (pair){ a + z, b + c };
}

typedef struct state {
    uint64_t x, y, z;
    pair v, w;
} state;

/* Hash 64 bytes. The last round uses another factor and multiplies some terms by 9. */
static void fold_64(state *s, const unsigned char *p, uint64_t factor, uint64_t weight)
{
    s->x = right(s->x + s->y + s->v.a + read_64(p + 8), 37) * factor;
    s->y = right(s->y + s->v.b + read_64(p + 48), 42) * factor;
    s->x ^= s->w.b * weight;
    s->y += s->v.a * weight + read_64(p + 40);
    s->z = right(s->z + s->w.a, 33) * factor;
    s->v = fold_32(p, s->v.b * factor, s->x + s->w.a);
    s->w = fold_32(p + 32, s->z + s->w.b, s->y + read_64(p + 16));
    const uint64_t swap = s->z;
    s->z = s->x;
    s->x = swap;
}

uint64_t keel_fingerprint(const void *data, size_t n)
{
    const unsigned char *p = data;
    if (n <= 16) return hash_to_16(p, n);
    if (n <= 32) return hash_to_32(p, n);
    if (n <= 64) return hash_to_64(p, n);
    const uint64_t seed = 81;
    const size_t left = (n - 1) & 63; /* bytes after the last full 64, less one */
    state s = { .x = seed * k2 + read_64(p),
                .y = seed * k1 + 113,
                .z = mix((seed * k1 + 113) * k2 + 113) * k2 };
    for (size_t i = 0; i + 64 < n; i += 64) fold_64(&s, p + i, k1, 1);
    const uint64_t factor = k1 + ((s.z & 0xff) << 1);
    s.w.a += left;
    s.v.a += s.w.a;
    s.w.a += s.v.a;
    fold_64(&s, p + n - 64, factor, 9);
    return join(join(s.v.a, s.w.a, factor) + mix(s.y) * k0 + s.z, join(s.v.b, s.w.b, factor) + s.x,
                factor);
}

void keel_fingerprint_add(uint64_t *sum, const void *data, size_t n_bytes)
{
    const uint64_t both[2] = { *sum, keel_fingerprint(data, n_bytes) };
    *sum = keel_fingerprint(both, sizeof both);
}

/* ---- SipHash ----------------------------------------------------------------------------------
 */

static uint64_t left(uint64_t v, int n)
{
    return v << n | v >> (64 - n);
}

static void rounds(uint64_t v[4], int n)
{
    while (n-- > 0) {
        v[0] += v[1];
        v[1] = left(v[1], 13) ^ v[0];
        v[0] = left(v[0], 32);
        v[2] += v[3];
        v[3] = left(v[3], 16) ^ v[2];
        v[0] += v[3];
        v[3] = left(v[3], 21) ^ v[0];
        v[2] += v[1];
        v[1] = left(v[1], 17) ^ v[2];
        v[2] = left(v[2], 32);
    }
}

static void absorb(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    rounds(v, 2);
    v[0] ^= word;
}

uint64_t keel_siphash(const uint64_t key[2], const void *data, size_t n)
{
    const unsigned char *p = data;
    uint64_t v[4] = { key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d,
                      key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573 };
    uint64_t last = (uint64_t)n << 56;
    for (size_t i = 0; i + 8 <= n; i += 8) absorb(v, read_64(p + i));
    for (size_t i = 0; i < n % 8; i++) last |= (uint64_t)p[n - n % 8 + i] << (8 * i);
    absorb(v, last);
    v[2] ^= 0xff;
    rounds(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
