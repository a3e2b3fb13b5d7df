/* Fraction of elements whose largest prediction is at the label. */
#ifndef REAL
#include "metrics/metric.h"
#include "losses/loss.h"

#define REAL_FILE "metrics/sparse_categorical_accuracy.c"
#include "ops/real.h"

const keel_metric keel_metric_sparse_categorical_accuracy = {
    .type = {
        .name = "SparseCategoricalAccuracy",
        .module = "keras.metrics",
        .help = "how often the largest prediction is the class of the label",
        .fields = keel_metric_fields,
    },
    .direction = 1,
    .target = KEEL_TARGET_LABEL,
    .of = REALS(of),
    .result = keel_metric_mean,
};

#else
#include "metrics/argmax.h"

static double REAL_(of)(keel_elements *e)
{
    const REAL *p = e->y_pred;
    int64_t hits = 0;
    for (int64_t k = 0; k < e->count; k++, p += e->last)
        hits += (double)REAL_(argmax)(p, e->last) ==
                keel_label_at(e->y_true, e->label_dtype, e->first + k);
    return (double)hits;
}
#endif
