/* What the metrics of intersection over union share: for each class TP / (true + predicted - TP),
 * and their mean over the classes asked for that occur at all. Sums, for each class: numbers that
 * are of it and predicted so, that are of it, that are predicted so. */
#ifndef KEEL_METRICS_IOU_H
#define KEEL_METRICS_IOU_H
#include "metrics/metric.h"

typedef struct keel_iou {
    int64_t num_classes, ignore_class;
    keel_reals target_class_ids; /* none: all classes */
    bool sparse_y_true, sparse_y_pred;
    double threshold; /* of BinaryIoU; NAN: predictions are class numbers, or have one each */
    char *dtype;      /* whole numbers (and null) cut off the fraction of weights, as Keras does */
} keel_iou;

#define KEEL_IOU_CLASSES KEEL_INT(keel_iou, num_classes, NULL, 1, 1e6, "how many classes there are")
#define KEEL_IOU_COMMON                                                                            \
    KEEL_INT(keel_iou, ignore_class, "null", 0, 0, "targets of this class do not count"),          \
        KEEL_REFUSE("axis", "-1", "along a dim of classes Keras fails, and 0 is that of rows"),    \
        KEEL_STRING(keel_iou, dtype, "null", "of the counts: weights are cut to whole numbers"),   \
        KEEL_IGNORE("name", "the name in logs, which the compiled model keeps")
#define KEEL_IOU_SPARSE                                                                            \
    KEEL_BOOL(keel_iou, sparse_y_true, "true", "targets are class numbers"),                       \
        KEEL_BOOL(keel_iou, sparse_y_pred, "true", "predictions are class numbers")

/* keel_type.ready of metrics whose table has KEEL_IOU_SPARSE, or of those of one-hot targets. */
keel_status keel_iou_ready(void *args);
keel_status keel_iou_one_hot(void *args);

keel_target_kind keel_iou_kind(const void *args);
bool keel_iou_cuts_weights(const keel_iou *a);
int64_t keel_iou_sums(const void *args, int64_t last);
keel_status keel_iou_check(const void *args, int64_t last);
void keel_iou_add(const keel_loss_call *c, int real, double *sum);
double keel_iou_result(const void *args, const double *sum, int64_t n);

#define KEEL_IOU_METRIC                                                                            \
    .unmasked = true, .kind = keel_iou_kind, .sums = keel_iou_sums, .check = keel_iou_check,       \
    .add = keel_iou_add, .result = keel_iou_result

#endif
