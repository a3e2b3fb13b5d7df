/* Best specificity at a threshold with at least that sensitivity. */
#include "metrics/_confusion.h"

static const keel_field fields[] = {
    { .key = "sensitivity",
      .kind = KEEL_FIELD_FLOAT,
      .offset = offsetof(keel_confusion, least),
      .max = 1,
      .help = "the least sensitivity" },
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
    return keel_confusion_best(args, sum, keel_recall, keel_specificity);
}

const keel_metric keel_metric_specificity_at_sensitivity = {
    .type = {
        .name = "SpecificityAtSensitivity",
        .module = "keras.metrics",
        .help = "best specificity at a threshold with at least that sensitivity",
        .args_size = sizeof(keel_confusion),
        .fields = fields,
        .ready = ready,
    },
    .check = keel_confusion_check,
    .sums = keel_confusion_sums,
    .add = keel_confusion_add,
    .result = result,
};
