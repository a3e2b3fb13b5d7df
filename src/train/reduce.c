/* See reduce.h. Parts are added in the order of the step's tree (graph/gradients.c). The loops are
 * plain, so that the compiler vectorises them. Finiteness is tested on the exponent bits: a test of
 * a sum would fix the order of its additions. */
#ifndef REAL
#include "train/reduce.h"
#include "base/clones.h"
#include <math.h>
#include <string.h>
#define REAL_FILE "train/reduce.c"
#define BITS      uint32_t
#define EXPONENT  0x7f800000u
#include "ops/real.h"

bool keel_reduce_tile(keel_dtype real, keel_reduction_of *r)
{
    return real == KEEL_FLOAT64 ? reduce_f64(r) : reduce_f32(r);
}
#else

#if REAL_IS_DOUBLE
#undef BITS
#undef EXPONENT
#define BITS     uint64_t
#define EXPONENT 0x7ff0000000000000u
#endif

KEEL_CLONES static void REAL_(add_into)(REAL *restrict g, const REAL *restrict other, int64_t n)
{
    for (int64_t i = 0; i < n; i++) g[i] += other[i];
}

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

KEEL_CLONES static void REAL_(regularise)(REAL *restrict g, const REAL *restrict w, REAL l1,
                                          REAL l2, int64_t n)
{
    for (int64_t i = 0; i < n; i++) g[i] += 2 * l2 * w[i] + (w[i] > 0 ? l1 : w[i] < 0 ? -l1 : 0);
}

static bool REAL_(reduce)(keel_reduction_of *r)
{
    REAL *g = r->part[0].data, *stack[KEEL_PARTS_MAX];
    const REAL *w = r->w;
    for (int i = 0, depth = 0; i < r->n_part; i++) {
        stack[depth++] = r->part[i].data;
        for (int c = r->part[i].closes; c > 0; c--, depth--)
            REAL_(add_into)(stack[depth - 2], stack[depth - 1], r->count);
    }
    const bool finite = !REAL_(scale_and_check)(g, (REAL)r->scale, r->count);
    r->regulariser = r->norm = 0;
    const keel_penalty *p = &r->penalty;
    if (p->l1 != 0 || p->l2 != 0) {
        double a = 0, b = 0;
        for (int64_t i = 0; i < r->count; i++) {
            a += fabs((double)w[i]);
            b += (double)w[i] * w[i];
        }
        r->regulariser = p->l1 * a + p->l2 * b;
        REAL_(regularise)(g, w, (REAL)p->l1, (REAL)p->l2, r->count);
    }
    if (r->orthogonal) REAL_(add_into)(g, r->orthogonal, r->count);
    for (int64_t i = 0; r->wants_norm && i < r->count; i++) r->norm += (double)g[i] * g[i];
    return finite;
}
#endif
