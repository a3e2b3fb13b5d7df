/* How often the class of the one-hot target is among the k largest predictions. */
#ifndef REAL
#include "metrics/metric.h"
#include "losses/loss.h"
#include "metrics/top_k.h"

typedef keel_top_k args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, k, "5", 1, 1e9, "number of largest predictions to consider"),
    KEEL_METRIC_FIELDS,
    { 0 },
};

#define REAL_FILE "metrics/top_k_categorical_accuracy.c"
#include "ops/real.h"

const keel_metric keel_metric_top_k_categorical_accuracy = {
    .type = {
        .name = "TopKCategoricalAccuracy",
        .module = "keras.metrics",
        .help = "how often the class of a one-hot target is among the k largest predictions",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .direction = 1,
    .target = KEEL_TARGET_ONE_HOT,
    .of = REALS(of),
    .result = keel_metric_mean,
};

#else
#include "metrics/argmax.h"
#include "metrics/in_top.h"

static double REAL_(of)(keel_elements *e)
{
    const REAL *p = e->y_pred, *t = e->y_true;
    const int64_t top = ((const args_t *)e->args)->k;
    int64_t hits = 0;
    for (int64_t k = 0; k < e->count; k++, p += e->last, t += e->last)
        hits += REAL_(in_top)(p, e->last, REAL_(argmax)(t, e->last), top);
    return (double)hits;
}
#endif
