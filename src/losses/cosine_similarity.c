/* Cosine similarity, negative: l = -sum over the last axis of p / |p| t / |t|, a length being 1e-7
 * at least. Its gradient is -(t / |t| + l p / |p|) / |p|; of a p as short as that, -(t / |t|) /
 * 1e-7. */
#ifndef REAL
#include "losses/each.h"

typedef keel_loss_with_axis args_t;

static const keel_field fields[] = {
    KEEL_LOSS_FIELDS(args_t),
    KEEL_SCORE_AXIS(args_t),
    { 0 },
};

#define REAL_FILE "losses/cosine_similarity.c"
#include "ops/real.h"

const keel_loss keel_loss_cosine_similarity = {
    .type = {
        .name = "CosineSimilarity",
        .module = "keras.losses",
        .help = "cosine of the angle between predictions and targets, negative",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .reduction_offset = offsetof(args_t, reduction),
    .axis_offset = offsetof(args_t, axis),
    .of = REALS(of),
};

#else
/* One over the length of x, and whether it is longer than the least. */
static REAL REAL_(inverse)(const REAL *x, int64_t n, bool *longer)
{
    REAL squares = 0;
    for (int64_t j = 0; j < n; j++) squares += x[j] * x[j];
    const REAL inverse = 1 / sqrt(squares), most = (REAL)(1 / KEEL_EPSILON);
    *longer = inverse <= most;
    return *longer ? inverse : most;
}

static REAL REAL_(one)(NO_ARGS, const REAL *p, const REAL *t, int64_t n, REAL scale, REAL *grad)
{
    bool longer, ignored;
    const REAL of_p = REAL_(inverse)(p, n, &longer), of_t = REAL_(inverse)(t, n, &ignored);
    REAL cosine = 0;
    for (int64_t j = 0; j < n; j++) cosine += t[j] * of_t * (p[j] * of_p);
    for (int64_t j = 0; grad && j < n; j++)
        grad[j] = -scale * of_p * (t[j] * of_t - (longer ? cosine * (p[j] * of_p) : 0));
    return -cosine;
}

KEEL_LOSS_OF_GROUPS(of)
#endif
