/* The Mersenne Twister MT19937 (Matsumoto and Nishimura 1998), seeded by one number, and the
 * shuffle of numpy's RandomState; see split_order.h. */
#include "data/split_order.h"
#include "base/memory.h"
#include <inttypes.h>

enum { WORDS = 624, AHEAD = 397 };

typedef struct twister {
    uint32_t word[WORDS];
    int at;
} twister;

static void begin(twister *t, uint32_t seed)
{
    t->word[0] = seed;
    for (uint32_t i = 1; i < WORDS; i++)
        t->word[i] = 1812433253u * (t->word[i - 1] ^ t->word[i - 1] >> 30) + i;
    t->at = WORDS;
}

static void renew(twister *t)
{
    uint32_t *w = t->word;
    for (int i = 0; i < WORDS; i++) {
        const uint32_t y = (w[i] & 0x80000000u) | (w[(i + 1) % WORDS] & 0x7fffffffu);
        w[i] = w[(i + AHEAD) % WORDS] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
    }
    t->at = 0;
}

static uint32_t next(twister *t)
{
    if (t->at == WORDS) renew(t);
    uint32_t y = t->word[t->at++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

/* 0 to `most`, all equally likely: the low bits of a word, drawn again while they are too large. */
static uint32_t draw(twister *t, uint32_t most)
{
    uint32_t mask = most, v;
    for (int shift = 1; shift < 32; shift *= 2) mask |= mask >> shift;
    do v = next(t) & mask;
    while (v > most);
    return v;
}

keel_status keel_split_order_create(keel_split_order **out, int64_t n, uint64_t seed)
{
    twister t;
    if (seed > UINT32_MAX)
        return keel_fail(KEEL_EARG,
                         "the seed %" PRIu64 " is above %" PRIu32 ", the largest by which numpy, "
                         "and so Keras, shuffles a directory before a split",
                         seed, UINT32_MAX);
    if (n > UINT32_MAX)
        return keel_fail(KEEL_EDATA, "%" PRId64 " rows are more than a split can shuffle", n);
    keel_split_order *o = keel_calloc(1, sizeof *o + (size_t)n * sizeof *o->at);
    if (!o) return KEEL_ENOMEM;
    o->references = 1;
    for (int64_t i = 0; i < n; i++) o->at[i] = (uint32_t)i;
    begin(&t, (uint32_t)seed);
    for (int64_t i = n - 1; i > 0; i--) {
        const uint32_t k = draw(&t, (uint32_t)i), moved = o->at[i];
        o->at[i] = o->at[k];
        o->at[k] = moved;
    }
    *out = o;
    return KEEL_OK;
}

keel_split_order *keel_split_order_share(keel_split_order *o)
{
    if (o) o->references++;
    return o;
}

void keel_split_order_release(keel_split_order *o)
{
    if (o && !--o->references) keel_free(o);
}
