/* See move.h. The loops are plain, so that the compiler vectorises them. Finiteness is tested on
 * the exponent bits: a test of a sum would fix the order of its additions. */
#ifndef REAL
#include "base/clones.h"
#include "optimizers/move.h"
#include <string.h>

#define REAL_FILE "optimizers/_check.c"
#define BITS      uint32_t
#define EXPONENT  0x7f800000u
#include "ops/real.h"

void keel_check(const keel_device_check *c)
{
    if (c->real == KEEL_FLOAT64)
        check_f64(c);
    else
        check_f32(c);
}

#else

#if REAL_IS_DOUBLE
#undef BITS
#undef EXPONENT
#define BITS     uint64_t
#define EXPONENT 0x7ff0000000000000u
#endif

KEEL_CLONES static BITS REAL_(scale_and_check)(REAL *g, REAL scale, int64_t n)
{
    BITS bad = 0;
    for (int64_t i = 0; i < n; i++) {
        const REAL v = g[i] * scale;
        BITS bits;
        memcpy(&bits, &v, sizeof bits);
        g[i] = v;
        bad |= (bits & EXPONENT) == EXPONENT;
    }
    return bad;
}

KEEL_CLONES static BITS REAL_(only_check)(const REAL *g, int64_t n)
{
    BITS bad = 0;
    for (int64_t i = 0; i < n; i++) {
        BITS bits;
        memcpy(&bits, &g[i], sizeof bits);
        bad |= (bits & EXPONENT) == EXPONENT;
    }
    return bad;
}

static void REAL_(check)(const keel_device_check *c)
{
    for (int i = 0; i < c->n_tile; i++) {
        REAL *g = (REAL *)c->g + c->tile[i].first;
        const int64_t n = c->tile[i].count;
        const REAL scale = (REAL)c->scale;
        c->vote[i].bad =
            (scale == 1 ? REAL_(only_check)(g, n) : REAL_(scale_and_check)(g, scale, n)) != 0;
        c->vote[i].squares = c->squares ? keel_squares(c->real, g, n) : 0;
    }
}
#endif
