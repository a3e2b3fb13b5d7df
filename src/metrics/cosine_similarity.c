/* The loss of the same name as a metric, but positive: 1 where directions are the same. */
#include "metrics/metric.h"

extern const keel_loss keel_loss_cosine_similarity;

static const keel_field fields[] = {
    KEEL_SCORE_AXIS(keel_loss_with_axis),
    KEEL_METRIC_FIELDS,
    { 0 },
};

static double result(const void *args, const double *sum, int64_t n)
{
    return 0 - keel_metric_mean(args, sum, n);
}

const keel_metric keel_metric_cosine_similarity = {
    .type = {
        .name = "CosineSimilarity",
        .module = "keras.metrics",
        .help = "cosine of the angle between predictions and targets",
        .args_size = sizeof(keel_loss_with_axis),
        .fields = fields,
    },
    .axis_offset = offsetof(keel_loss_with_axis, axis),
    .direction = 1,
    .loss = &keel_loss_cosine_similarity,
    .result = result,
};
