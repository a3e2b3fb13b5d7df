/* Intersection over union of two classes: predictions from the threshold on are class 1. */
#include "metrics/_iou.h"

static const keel_field fields[] = {
    { .key = "target_class_ids",
      .kind = KEEL_FIELD_REALS,
      .dflt = "[0, 1]",
      .offset = offsetof(keel_iou, target_class_ids),
      .max = 1,
      .help = "classes whose mean is taken" },
    KEEL_FLOAT(keel_iou, threshold, "0.5", -1e30, 1e30, "predictions from it on are class 1"),
    KEEL_STRING(keel_iou, dtype, "null", "of the counts: weights are cut to whole numbers"),
    KEEL_IGNORE("name", "the name in logs, which the compiled model keeps"),
    { 0 },
};

static keel_status ready(void *args)
{
    keel_iou *a = args;
    const double threshold = a->threshold;
    a->num_classes = 2;
    a->ignore_class = KEEL_INT_NULL;
    a->sparse_y_true = a->sparse_y_pred = true;
    KEEL_TRY(keel_iou_ready(args));
    a->threshold = threshold;
    return KEEL_OK;
}

const keel_metric keel_metric_binary_iou = {
    .type = {
        .name = "BinaryIoU",
        .module = "keras.metrics",
        .help = "mean intersection over union of 0 and 1, by a threshold",
        .args_size = sizeof(keel_iou),
        .fields = fields,
        .ready = ready,
    },
    .direction = 1,
    KEEL_IOU_METRIC,
};
