/* Hinge: l = mean over the last axis of max(1 - t p, 0). Targets: hinge.h. */
#ifndef REAL
#include "losses/hinge.h"

#define REAL_FILE "losses/hinge.c"
#include "ops/real.h"

const keel_loss keel_loss_hinge = {
    .type = {
        .name = "Hinge",
        .module = "keras.losses",
        .help = "mean of how far predictions are from their side of the margin",
        .args_size = sizeof(keel_loss_plain),
        .fields = keel_loss_plain_fields,
    },
    .reduction_offset = offsetof(keel_loss_plain, reduction),
    .of = REALS(of),
};

#else
static REAL REAL_(at)(NO_ARGS, REAL p, REAL t, REAL *slope)
{
    const REAL side = t == 0 ? -1 : t, left = 1 - side * p;
    *slope = left >= 0 ? -side : 0;
    return left < 0 ? 0 : left; /* a NaN stays */
}

KEEL_LOSS_OF_MARGIN(of)
#endif
