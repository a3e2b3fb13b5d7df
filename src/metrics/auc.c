/* Area under a curve of two rates, over thresholds from 0 to 1: recall over the rate of false
 * positives (ROC), precision over recall (PR), or the gains of both (PRGAIN, Flach and Kull 2015).
 * Between two thresholds the curve is interpolated, or its lower or upper end is taken. For PR the
 * interpolation is that of true and false positives (Davis and Goadrich 2006), not of rates. */
#include "base/ascending.h"
#include "metrics/_confusion.h"
#include <math.h>
#include <stdlib.h>

enum { ROC, PR, PRGAIN };
enum { INTERPOLATION, MINORING, MAJORING };

static const keel_field fields[] = {
    KEEL_INT(keel_confusion, num_thresholds, "200", 2, 1e6,
             "how many thresholds, if none are given"),
    KEEL_CHOICE(keel_confusion, curve, "\"ROC\"", "ROC|PR|PRGAIN", "the curve"),
    KEEL_CHOICE(keel_confusion, summation_method, "\"interpolation\"",
                "interpolation|minoring|majoring", "height of the curve between thresholds"),
    { .key = "thresholds",
      .kind = KEEL_FIELD_REALS,
      .dflt = "null",
      .offset = offsetof(keel_confusion, thresholds),
      .max = 1,
      .help = "thresholds of your own between 0 and 1" },
    KEEL_BOOL(keel_confusion, multi_label, "false",
              "a curve for each index of the last axis; the result is the mean of their areas"),
    KEEL_IGNORE("num_labels", "predictions say it"),
    { .key = "label_weights",
      .kind = KEEL_FIELD_REALS,
      .dflt = "null",
      .offset = offsetof(keel_confusion, label_weights),
      .max = 1e30,
      .help = "of each index of the last axis: of its elements, or with multi_label of its area" },
    KEEL_BOOL(keel_confusion, from_logits, "false", "predictions are logits, not probabilities"),
    KEEL_METRIC_FIELDS,
    { 0 },
};

static keel_status ready(void *args)
{
    keel_confusion *a = args;
    a->top_k = a->class_id = KEEL_INT_NULL;
    a->outside = true;
    keel_sort_ascending(a->thresholds.at, a->thresholds.count);
    return KEEL_OK;
}

typedef struct point {
    double x, y;
} point;

static point point_of(const keel_confusion *a, const keel_counts *c)
{
    if (a->curve == ROC) return (point){ 1 - keel_specificity(c), keel_recall(c) };
    if (a->curve == PR) return (point){ keel_recall(c), keel_precision(c) };
    const double tp = c->true_positives;
    const double scale =
        keel_ratio(tp + c->false_negatives, c->true_negatives + c->false_positives);
    if (tp == 0) return (point){ 0, 1 };
    return (point){ fmax(1 - scale * c->false_negatives / tp, 0),
                    1 - scale * c->false_positives / tp };
}

/* The area between threshold i (low) and i + 1 (high) of the PR curve. */
static double between(const keel_counts *low, const keel_counts *high)
{
    const double p_low = low->true_positives + low->false_positives;
    const double p_high = high->true_positives + high->false_positives;
    const double tp = low->true_positives - high->true_positives;
    const double slope = keel_ratio(tp, p_low - p_high);
    const double start = high->true_positives - slope * p_high;
    const double ratio = p_low > 0 && p_high > 0 ? p_low / p_high : 1;
    return keel_ratio(slope * (tp + start * log(ratio)),
                      high->true_positives + high->false_negatives);
}

static double area(const keel_confusion *a, const double *sum, int64_t n)
{
    keel_counts high = keel_confusion_none(sum, n);
    double all = 0;
    keel_confusion_down(&high, sum, n, n - 1);
    for (int64_t i = n - 2; i >= 0; i--) {
        keel_counts low = high;
        keel_confusion_down(&low, sum, n, i);
        const point p = point_of(a, &low), q = point_of(a, &high);
        const double height = a->summation_method == MINORING   ? fmin(p.y, q.y)
                              : a->summation_method == MAJORING ? fmax(p.y, q.y)
                                                                : (p.y + q.y) / 2;
        const bool by_counts = a->curve == PR && a->summation_method == INTERPOLATION;
        all += by_counts ? between(&low, &high) : (p.x - q.x) * height;
        high = low;
    }
    return all;
}

static double result(const void *args, const double *sum, int64_t n)
{
    const keel_confusion *a = args;
    const int64_t length = keel_confusion_sums(args, 1), curves = n / length;
    double all = 0, weights = 0;
    for (int64_t i = 0; i < curves; i++) {
        const double w = a->multi_label && a->label_weights.count > i ? a->label_weights.at[i] : 1;
        all += w * area(a, sum + i * length, length / 2 - 1);
        weights += w;
    }
    return keel_ratio(all, weights);
}

const keel_metric keel_metric_auc = {
    .type = {
        .name = "AUC",
        .module = "keras.metrics",
        .help = "area under the ROC or precision-recall curve",
        .args_size = sizeof(keel_confusion),
        .fields = fields,
        .ready = ready,
    },
    .direction = 1,
    KEEL_CONFUSION_METRIC,
    .result = result,
};
