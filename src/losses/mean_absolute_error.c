/* Mean absolute error: l = mean over the last axis of |p - t|; no slope at 0. */
#ifndef REAL
#include "losses/each.h"

#define REAL_FILE "losses/mean_absolute_error.c"
#include "ops/real.h"

const keel_loss keel_loss_mean_absolute_error = {
    .type = {
        .name = "MeanAbsoluteError",
        .alias = "mae|MAE",
        .module = "keras.losses",
        .help = "mean of the absolute differences",
        .args_size = sizeof(keel_loss_plain),
        .fields = keel_loss_plain_fields,
    },
    .reduction_offset = offsetof(keel_loss_plain, reduction),
    .of = REALS(of),
};

#else
static REAL REAL_(at)(NO_ARGS, REAL p, REAL t, REAL *slope)
{
    *slope = (REAL)((p > t) - (p < t));
    return fabs(p - t);
}

KEEL_LOSS_OF_EACH(of)
#endif
