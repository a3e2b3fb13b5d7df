/* R^2: 1 - sum (t - p)^2 / sum (t - mean t)^2 for each of the numbers of a row, then their mean, or
 * their mean by the variance of the targets; adjusted for num_regressors: what n rows of noise
 * would explain is taken off. Sums, for each number: t, t^2, (t - p)^2 and weights; then rows. */
#include "metrics/metric.h"
#include <math.h>

typedef struct args_t {
    int class_aggregation; /* -1: a score for each number of a row */
    int64_t num_regressors;
} args_t;

enum { UNIFORM, BY_VARIANCE };
enum { SUM, SQUARES, RESIDUAL, WEIGHT, COUNTS };

static const keel_field fields[] = {
    { .key = "class_aggregation",
      .kind = KEEL_FIELD_CHOICE,
      .offset = offsetof(args_t, class_aggregation),
      .dflt = "\"uniform_average\"",
      .nullable = true,
      .choices = "uniform_average|variance_weighted_average",
      .help = "how several numbers become one (null: a score for each)" },
    KEEL_INT(args_t, num_regressors, "0", 0, 1e9, "of the adjusted score; 0: not adjusted"),
    KEEL_METRIC_FIELDS,
    { 0 },
};

static int64_t sums(const void *args, int64_t last)
{
    (void)args;
    return COUNTS * last + 1;
}

static void add(const keel_loss_call *c, int real, double *sum)
{
    keel_dense d = { 0 };
    if (keel_target_check(KEEL_TARGET_DENSE, "", c->prediction, c->target, &d) < 0) return;
    for (int64_t i = 0; i < c->rows; i++) {
        const double w = keel_element_weight(c, real, 1, i, 0);
        for (int64_t j = 0; w != 0 && j < d.last; j++) {
            const double t = keel_real_at(c->y_true, real, i * d.last + j);
            const double off = t - keel_real_at(c->y_pred, real, i * d.last + j);
            double *count = sum + j * COUNTS;
            count[SUM] += w * t;
            count[SQUARES] += w * t * t;
            count[RESIDUAL] += w * off * off;
            count[WEIGHT] += w;
        }
        sum[d.last * COUNTS] += (double)d.last; /* Keras counts numbers, not rows */
    }
}

/* The score of number j of the rows, and the sum that it explains a share of. */
static double score(const double *sum, int64_t j, double *total)
{
    const double *count = sum + j * COUNTS;
    *total = 0;
    if (count[WEIGHT] == 0) return 0;
    *total = count[SQUARES] - count[SUM] * (count[SUM] / count[WEIGHT]);
    const double raw = 1 - count[RESIDUAL] / *total;
    return isinf(raw) ? 0 : raw;
}

static double adjusted(const args_t *a, double score, double samples)
{
    const double regressors = (double)a->num_regressors;
    if (regressors == 0 || regressors >= samples - 1) return score; /* as Keras, which warns */
    return 1 - (1 - score) * (samples - 1) / (samples - regressors - 1);
}

static double result(const void *args, const double *sum, int64_t n)
{
    const args_t *a = args;
    double scores = 0, weights = 0, total;
    bool any = false;
    for (int64_t j = 0; j < n / COUNTS; j++) {
        const double own = score(sum, j, &total);
        if (sum[j * COUNTS + WEIGHT] == 0) continue;
        const double weight = a->class_aggregation == BY_VARIANCE ? total : 1;
        scores += weight * own;
        weights += weight;
        any = true;
    }
    return adjusted(a, any ? scores / weights : 0, sum[n - 1]);
}

static int64_t values(const void *args, int64_t n)
{
    return ((const args_t *)args)->class_aggregation < 0 ? n / COUNTS : 1;
}

static double value(const void *args, const double *sum, int64_t n, int64_t i)
{
    double total;
    return adjusted(args, score(sum, i, &total), sum[n - 1]);
}

const keel_metric keel_metric_r2_score = {
    .type = {
        .name = "R2Score",
        .alias = "r2_score",
        .module = "keras.metrics",
        .help = "share of the variance of the targets that predictions explain",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .direction = 1,
    .one_dim = true,
    .unmasked = true,
    .sums = sums,
    .add = add,
    .result = result,
    .values = values,
    .value = value,
};
