/* The loss of the same name as a metric. */
#include "metrics/metric.h"

extern const keel_loss keel_loss_kl_divergence;

const keel_metric keel_metric_kl_divergence = {
    .type = {
        .name = "KLDivergence",
        .module = "keras.metrics",
        .help = "how far the predicted distribution is from that of the targets",
        .args_size = sizeof(keel_loss_plain),
        .fields = keel_metric_fields,
    },
    .direction = -1,
    .loss = &keel_loss_kl_divergence,
    .result = keel_metric_mean,
};
