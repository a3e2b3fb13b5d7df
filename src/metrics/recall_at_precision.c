/* Best recall at a threshold with at least that precision. */
#include "metrics/_confusion.h"

static const keel_field fields[] = {
    { .key = "precision",
      .kind = KEEL_FIELD_FLOAT,
      .offset = offsetof(keel_confusion, least),
      .max = 1,
      .help = "the least precision" },
    KEEL_INT(keel_confusion, num_thresholds, "200", 1, 1e6, "how many thresholds are tried"),
    KEEL_CONFUSION_CLASS,
    KEEL_METRIC_FIELDS,
    { 0 },
};

static keel_status ready(void *args)
{
    ((keel_confusion *)args)->top_k = KEEL_INT_NULL;
    return KEEL_OK;
}

static double result(const void *args, const double *sum, int64_t n)
{
    (void)n;
    return keel_confusion_best(args, sum, keel_precision, keel_recall);
}

const keel_metric keel_metric_recall_at_precision = {
    .type = {
        .name = "RecallAtPrecision",
        .module = "keras.metrics",
        .help = "best recall at a threshold with at least that precision",
        .args_size = sizeof(keel_confusion),
        .fields = fields,
        .ready = ready,
    },
    .check = keel_confusion_check,
    .sums = keel_confusion_sums,
    .add = keel_confusion_add,
    .result = result,
};
