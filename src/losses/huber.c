/* Huber: l = mean over the last axis of x^2 / 2 for |x| <= delta, x = p - t, and of
 * delta |x| - delta^2 / 2 beyond. */
#ifndef REAL
#include "losses/each.h"
#include "losses/huber.h"

typedef keel_huber args_t;

static const keel_field fields[] = {
    KEEL_LOSS_FIELDS(args_t),
    KEEL_FLOAT(args_t, delta, "1.0", 0, 1e30, "differences up to it count by their squares"),
    { 0 },
};

#define REAL_FILE "losses/huber.c"
#include "ops/real.h"

const keel_loss keel_loss_huber = {
    .type = {
        .name = "Huber",
        .module = "keras.losses",
        .help = "mean of squares where differences are small, of sizes where they are large",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .reduction_offset = offsetof(args_t, reduction),
    .of = REALS(of),
};

#else
static REAL REAL_(at)(const args_t *a, REAL p, REAL t, REAL *slope)
{
    const REAL delta = (REAL)a->delta, x = p - t, size = fabs(x), half = (REAL)0.5;
    *slope = size <= delta ? x : x > 0 ? delta : -delta;
    return size <= delta ? half * (x * x) : delta * size - half * (delta * delta);
}

KEEL_LOSS_OF_EACH(of)
#endif
