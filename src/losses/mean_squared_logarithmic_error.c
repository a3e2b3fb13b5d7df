/* Mean squared logarithmic error: l = mean over the last axis of (log(1 + p) - log(1 + t))^2, p and
 * t being epsilon at least; no gradient flows where p was less. */
#ifndef REAL
#include "losses/each.h"

#define REAL_FILE "losses/mean_squared_logarithmic_error.c"
#include "ops/real.h"

const keel_loss keel_loss_mean_squared_logarithmic_error = {
    .type = {
        .name = "MeanSquaredLogarithmicError",
        .alias = "msle|MSLE",
        .module = "keras.losses",
        .help = "mean of the squared differences of the logarithms of 1 + x",
        .args_size = sizeof(keel_loss_plain),
        .fields = keel_loss_plain_fields,
    },
    .reduction_offset = offsetof(keel_loss_plain, reduction),
    .of = REALS(of),
};

#else
static REAL REAL_(at)(NO_ARGS, REAL p, REAL t, REAL *slope)
{
    const REAL least = (REAL)KEEL_EPSILON;
    const REAL cut = p < least ? least : p, of = t < least ? least : t; /* a NaN stays */
    const REAL d = log(cut + 1) - log(of + 1);
    *slope = p >= least ? 2 * d / (cut + 1) : 0;
    return d * d;
}

KEEL_LOSS_OF_EACH(of)
#endif
