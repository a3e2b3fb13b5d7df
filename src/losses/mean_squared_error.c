/* Mean squared error over the last axis: l = sum_j (p_j - t_j)^2 / last.
 * dl/dp_j = 2 (p_j - t_j) / last. */
#ifndef REAL
#include "losses/loss.h"

typedef struct args_t {
    int reduction;
} args_t;

static const keel_field fields[] = {
    KEEL_LOSS_FIELDS(args_t),
    { 0 },
};

#define REAL_FILE "losses/mean_squared_error.c"
#include "ops/real.h"

const keel_loss keel_loss_mean_squared_error = {
    .type = {
        .name = "MeanSquaredError",
        .alias = "mse|MSE",
        .module = "keras.losses",
        .help = "mean of the squared differences",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .reduction_offset = offsetof(args_t, reduction),
    .of = REALS(of),
};

#else
static double REAL_(of)(keel_elements *e)
{
    const REAL *p = e->y_pred, *t = e->y_true, scale = (REAL)(2 * e->scale / (double)e->last);
    const int64_t n = e->count * e->last;
    REAL *grad = e->grad;
    double sum = 0;
    for (int64_t j = 0; j < n; j++) {
        const REAL d = p[j] - t[j];
        sum += (double)(d * d);
    }
    for (int64_t j = 0; grad && j < n; j++) grad[j] = scale * (p[j] - t[j]);
    return sum / (double)e->last;
}
#endif
