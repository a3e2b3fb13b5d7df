/* See reduce.h. Parts are added in the order of the step's tree (graph/gradients.c). */
#ifndef REAL
#include "train/reduce.h"
#include "base/clones.h"
#include "optimizers/move.h"
#define REAL_FILE "train/reduce.c"
#include "ops/real.h"

double keel_reduce_penalty(keel_dtype real, const keel_penalty *p, const void *w, int64_t count)
{
    double sums[2];
    keel_measure(&(keel_device_measure){
        .real = real, .count = count, .tile = count, .w = w, .sums = sums });
    return p->l1 * sums[0] + p->l2 * sums[1];
}

bool keel_reduce_tile(keel_dtype real, keel_reduction_of *r)
{
    return real == KEEL_FLOAT64 ? reduce_f64(r) : reduce_f32(r);
}
#else

KEEL_CLONES static void REAL_(add_into)(REAL *restrict g, const REAL *restrict other, int64_t n)
{
    for (int64_t i = 0; i < n; i++) g[i] += other[i];
}

static bool REAL_(reduce)(keel_reduction_of *r)
{
    REAL *g = r->part[0].data, *stack[KEEL_PARTS_MAX];
    const keel_dtype dtype = REAL_IS_DOUBLE ? KEEL_FLOAT64 : KEEL_FLOAT32;
    const void *w = r->w;
    const keel_penalty *p = &r->penalty;
    const bool decays = p->l1 != 0 || p->l2 != 0;
    for (int i = 0, depth = 0; i < r->n_part; i++) {
        stack[depth++] = r->part[i].data;
        for (int c = r->part[i].closes; c > 0; c--, depth--)
            REAL_(add_into)(stack[depth - 2], stack[depth - 1], r->count);
    }
    keel_device_vote vote;
    keel_check(&(keel_device_check){ .real = dtype,
                                     .n_tile = 1,
                                     .tile = &(keel_device_tile){ 0, r->count },
                                     .g = g,
                                     .end = r->count,
                                     .scale = r->scale,
                                     .vote = &vote });
    r->regulariser = 0;
    if (decays) {
        r->regulariser = keel_reduce_penalty(dtype, p, w, r->count);
        keel_move(&(keel_device_move){ .rule = KEEL_RULE_PENALTY,
                                       .real = dtype,
                                       .count = r->count,
                                       .w = g,
                                       .g = w,
                                       .number = { .l1 = p->l1, .twice_l2 = 2 * p->l2 } });
    }
    if (r->orthogonal) REAL_(add_into)(g, r->orthogonal, r->count);
    r->norm = r->wants_norm ? keel_squares(dtype, g, r->count) : 0;
    return !vote.bad;
}
#endif
