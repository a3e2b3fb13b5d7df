/* The loss of the same name as a metric, with the same args and the same mathematics. */
#include "losses/crossentropy.h"
#include "metrics/metric.h"

typedef keel_crossentropy
    args_t; /* reduction stays 0: a metric is a mean over rows by their weights */

static const keel_field fields[] = {
    KEEL_BOOL(args_t, from_logits, "false", "predictions are logits, not probabilities"),
    KEEL_FLOAT(args_t, label_smoothing, "0", 0, 1, "smooths the targets, as in the loss"),
    KEEL_REFUSE("axis", "-1", "Keras's metric has no such argument"),
    KEEL_METRIC_FIELDS,
    { 0 },
};

const keel_metric keel_metric_binary_crossentropy = {
    .type = {
        .name = "BinaryCrossentropy",
        .alias = "bce|BCE",
        .module = "keras.metrics",
        .help = "mean over rows of the loss with this name",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .direction = -1,
    .loss = &keel_loss_binary_crossentropy,
    .result = keel_metric_mean,
};
