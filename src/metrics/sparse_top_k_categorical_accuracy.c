/* How often the label is among the k largest predictions. */
#ifndef REAL
#include "metrics/metric.h"
#include "losses/loss.h"
#include "metrics/top_k.h"

typedef keel_top_k args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, k, "5", 1, 1e9, "number of largest predictions to consider"),
    KEEL_BOOL(args_t, from_sorted_ids, "false",
              "predictions are numbers of classes, the best first, not scores"),
    KEEL_METRIC_FIELDS,
    { 0 },
};

#define REAL_FILE "metrics/sparse_top_k_categorical_accuracy.c"
#include "ops/real.h"

const keel_metric keel_metric_sparse_top_k_categorical_accuracy = {
    .type = {
        .name = "SparseTopKCategoricalAccuracy",
        .module = "keras.metrics",
        .help = "how often the label is among the k largest predictions",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .direction = 1,
    .target = KEEL_TARGET_LABEL,
    .of = REALS(of),
    .result = keel_metric_mean,
};

#else
#include "metrics/in_top.h"

static bool REAL_(is_listed)(const REAL *id, int64_t n, double label)
{
    for (int64_t i = 0; i < n; i++)
        if ((double)id[i] == label) return true;
    return false;
}

static double REAL_(of)(keel_elements *e)
{
    const REAL *p = e->y_pred;
    const args_t *a = e->args;
    const int64_t listed = a->k < e->last ? a->k : e->last;
    int64_t hits = 0;
    for (int64_t k = 0; k < e->count; k++, p += e->last) {
        const double label = keel_label_at(e->y_true, e->label_dtype, e->first + k);
        const bool inside = label > -1 && label < (double)e->last;
        hits += a->from_sorted_ids ? REAL_(is_listed)(p, listed, label)
                                   : inside && REAL_(in_top)(p, e->last, (int64_t)label, a->k);
    }
    return (double)hits;
}
#endif
