/* Fraction of elements whose largest prediction is at the index of the one-hot target. */
#ifndef REAL
#include "metrics/metric.h"
#include "losses/loss.h"

#define REAL_FILE "metrics/categorical_accuracy.c"
#include "ops/real.h"

const keel_metric keel_metric_categorical_accuracy = {
    .type = {
        .name = "CategoricalAccuracy",
        .module = "keras.metrics",
        .help = "how often the largest prediction is the class of a one-hot target",
        .fields = keel_metric_fields,
    },
    .direction = 1,
    .target = KEEL_TARGET_ONE_HOT,
    .of = REALS(of),
    .result = keel_metric_mean,
};

#else
#include "metrics/argmax.h"

static double REAL_(of)(keel_elements *e)
{
    const REAL *p = e->y_pred, *t = e->y_true;
    int64_t hits = 0;
    for (int64_t k = 0; k < e->count; k++, p += e->last, t += e->last)
        hits += REAL_(argmax)(p, e->last) == REAL_(argmax)(t, e->last);
    return (double)hits;
}
#endif
