/* Mean squared error: l = sum_j (p_j - t_j)^2 / last, for each group of the last axis.
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

static keel_status check(const void *args, const keel_spec *prediction, const keel_spec *target,
                         int64_t *elements)
{
    keel_dense d = { 0 };
    KEEL_TRY(keel_loss_check_reduction("MeanSquaredError", ((const args_t *)args)->reduction));
    KEEL_TRY(keel_loss_dense("MeanSquaredError", prediction, target, &d));
    *elements = d.elements;
    return KEEL_OK;
}

#define REAL_FILE "losses/mean_squared_error.c"
#include "ops/real.h"

const keel_loss keel_loss_mean_squared_error = {
    .type = {
        .name = "MeanSquaredError",
        .alias = "mse",
        .module = "keras.losses",
        .help = "mean of the squared differences",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .reduction_offset = offsetof(args_t, reduction),
    .check = check,
    .run = REALS(run),
};

#else
static void REAL_(run)(const keel_loss_call *c)
{
    const REAL *p = c->y_pred, *t = c->y_true, *weight = c->weight;
    REAL *grad = c->grad;
    keel_dense d = { 0 };
    if (keel_loss_dense("MeanSquaredError", c->prediction, c->target, &d) < 0) return;
    const int64_t n = d.elements * d.last; /* of a row */
    double total = 0, weights = 0;
    for (int64_t i = 0; i < c->rows; i++, p += n, t += n) {
        const double w = weight ? (double)weight[i] : 1;
        const REAL scale = (REAL)(2 * c->seed * w / (double)d.last);
        double sum = 0;
        if (w != 0)
            for (int64_t j = 0; j < n; j++) {
                const REAL e = p[j] - t[j];
                sum += (double)(e * e);
            }
        if (grad)
            for (int64_t j = 0; j < n; j++) grad[i * n + j] = w != 0 ? scale * (p[j] - t[j]) : 0;
        total += w * sum;
        weights += w;
    }
    c->sum[0] += total / (double)d.last;
    c->sum[1] += (double)(c->rows * d.elements);
    c->sum[2] += weights * (double)d.elements;
}
#endif
