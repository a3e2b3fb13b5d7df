/* The F-beta score with beta of 1. */
#include "metrics/_fbeta.h"

static const keel_field fields[] = { KEEL_FBETA_FIELDS, KEEL_METRIC_FIELDS, { 0 } };

static keel_status ready(void *args)
{
    ((keel_fbeta *)args)->beta = 1;
    return KEEL_OK;
}

const keel_metric keel_metric_f1_score = {
    .type = {
        .name = "F1Score",
        .alias = "f1_score",
        .module = "keras.metrics",
        .help = "harmonic mean of precision and recall",
        .args_size = sizeof(keel_fbeta),
        .fields = fields,
        .ready = ready,
    },
    .direction = 1,
    KEEL_FBETA_METRIC,
};
