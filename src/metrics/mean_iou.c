/* Intersection over union: the mean of all classes that occur. */
#include "metrics/_iou.h"

static const keel_field fields[] = {
    KEEL_IOU_CLASSES,
    KEEL_IOU_SPARSE,
    KEEL_IOU_COMMON,
    { 0 },
};

const keel_metric keel_metric_mean_iou = {
    .type = {
        .name = "MeanIoU",
        .module = "keras.metrics",
        .help = "mean intersection over union of all classes",
        .args_size = sizeof(keel_iou),
        .fields = fields,
        .ready = keel_iou_ready,
    },
    .direction = 1,
    KEEL_IOU_METRIC,
};
