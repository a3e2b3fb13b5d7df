/* Intersection over union of the classes asked for, of one-hot targets. */
#include "metrics/_iou.h"

static const keel_field fields[] = {
    KEEL_IOU_CLASSES,
    { .key = "target_class_ids",
      .kind = KEEL_FIELD_REALS,
      .offset = offsetof(keel_iou, target_class_ids),
      .max = 1e6,
      .help = "classes whose mean is taken" },
    KEEL_BOOL(keel_iou, sparse_y_pred, "false", "predictions are class numbers"),
    KEEL_IOU_COMMON,
    { 0 },
};

const keel_metric keel_metric_one_hot_iou = {
    .type = {
        .name = "OneHotIoU",
        .module = "keras.metrics",
        .help = "mean intersection over union of some classes of one-hot targets",
        .args_size = sizeof(keel_iou),
        .fields = fields,
        .ready = keel_iou_one_hot,
    },
    .direction = 1,
    KEEL_IOU_METRIC,
};
