/* Best precision at a threshold with at least that recall. */
#include "metrics/_confusion.h"

static const keel_field fields[] = {
    { .key = "recall",
      .kind = KEEL_FIELD_FLOAT,
      .offset = offsetof(keel_confusion, least),
      .max = 1,
      .help = "the least recall" },
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
    return keel_confusion_best(args, sum, keel_recall, keel_precision);
}

const keel_metric keel_metric_precision_at_recall = {
    .type = {
        .name = "PrecisionAtRecall",
        .module = "keras.metrics",
        .help = "best precision at a threshold with at least that recall",
        .args_size = sizeof(keel_confusion),
        .fields = fields,
        .ready = ready,
    },
    .check = keel_confusion_check,
    .sums = keel_confusion_sums,
    .add = keel_confusion_add,
    .result = result,
};
