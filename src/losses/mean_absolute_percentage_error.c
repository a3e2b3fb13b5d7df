/* Mean absolute percentage error: l = 100 mean over the last axis of |t - p| / max(|t|, epsilon).
 */
#ifndef REAL
#include "losses/each.h"

#define REAL_FILE "losses/mean_absolute_percentage_error.c"
#include "ops/real.h"

const keel_loss keel_loss_mean_absolute_percentage_error = {
    .type = {
        .name = "MeanAbsolutePercentageError",
        .alias = "mape|MAPE",
        .module = "keras.losses",
        .help = "mean of the absolute differences in percent of the targets",
        .args_size = sizeof(keel_loss_plain),
        .fields = keel_loss_plain_fields,
    },
    .reduction_offset = offsetof(keel_loss_plain, reduction),
    .of = REALS(of),
};

#else
static REAL REAL_(at)(NO_ARGS, REAL p, REAL t, REAL *slope)
{
    const REAL size = fmax(fabs(t), (REAL)KEEL_EPSILON);
    *slope = 100 * (REAL)((p > t) - (p < t)) / size;
    return 100 * fabs((t - p) / size);
}

KEEL_LOSS_OF_EACH(of)
#endif
