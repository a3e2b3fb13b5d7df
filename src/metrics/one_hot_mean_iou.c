/* Intersection over union of one-hot targets: the mean of all classes that occur. */
#include "metrics/_iou.h"

static const keel_field fields[] = {
    KEEL_IOU_CLASSES,
    KEEL_BOOL(keel_iou, sparse_y_pred, "false", "predictions are class numbers"),
    KEEL_IOU_COMMON,
    { 0 },
};

const keel_metric keel_metric_one_hot_mean_iou = {
    .type = {
        .name = "OneHotMeanIoU",
        .module = "keras.metrics",
        .help = "mean intersection over union of all classes of one-hot targets",
        .args_size = sizeof(keel_iou),
        .fields = fields,
        .ready = keel_iou_one_hot,
    },
    .direction = 1,
    KEEL_IOU_METRIC,
};
