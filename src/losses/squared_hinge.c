/* Squared hinge: l = mean over the last axis of max(1 - t p, 0)^2. Targets: hinge.h. */
#ifndef REAL
#include "losses/hinge.h"

#define REAL_FILE "losses/squared_hinge.c"
#include "ops/real.h"

const keel_loss keel_loss_squared_hinge = {
    .type = {
        .name = "SquaredHinge",
        .module = "keras.losses",
        .help = "mean of the squares of how far predictions are from their side of the margin",
        .args_size = sizeof(keel_loss_plain),
        .fields = keel_loss_plain_fields,
    },
    .reduction_offset = offsetof(keel_loss_plain, reduction),
    .of = REALS(of),
};

#else
static REAL REAL_(at)(NO_ARGS, REAL p, REAL t, REAL *slope)
{
    const REAL side = t == 0 ? -1 : t, all = 1 - side * p, left = all < 0 ? 0 : all;
    *slope = -2 * side * left;
    return left * left;
}

KEEL_LOSS_OF_MARGIN(of)
#endif
