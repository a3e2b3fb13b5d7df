/* Metrics that count predictions above thresholds: right and wrong ones, of targets that are 0 or
 * not. Their sums are a histogram: for n thresholds in ascending order, 2 (n + 1) sums, the weight
 * of elements by how many thresholds are below the prediction, first of targets that are not 0. */
#ifndef KEEL_METRICS_CONFUSION_H
#define KEEL_METRICS_CONFUSION_H
#include "metrics/metric.h"

typedef struct keel_confusion {
    keel_reals thresholds; /* of AUC ascending */
    int64_t
        num_thresholds; /* if `thresholds` is empty: that many, evenly from 0 to 1; 0 or 1: 0.5 */
    bool outside;       /* before the first threshold one just below 0, behind the last one just
                           above 1, so that every prediction is between two */
    int64_t top_k;      /* only the k largest of the last axis count as above; KEEL_INT_NULL */
    int64_t class_id;   /* only this index of the last axis counts; KEEL_INT_NULL: all */
    bool from_logits;   /* predictions are logits: their sigmoid is compared */
    bool multi_label;   /* a histogram for each index of the last axis */
    keel_reals label_weights;    /* of AUC: of each index of the last axis; empty: all are 1 */
    double least;                /* of the metrics at a least precision, recall ... */
    int curve, summation_method; /* of AUC */
} keel_confusion;

#define KEEL_CONFUSION_THRESHOLD                                                                   \
    {                                                                                              \
        .key = "thresholds", .kind = KEEL_FIELD_REALS, .count = 1, .dflt = "null",                 \
        .offset = offsetof(keel_confusion, thresholds), .max = 1,                                  \
        .help =                                                                                    \
            "a prediction above it counts as positive (default 0.5); several give several numbers" \
    }
#define KEEL_CONFUSION_CLASS                                                                       \
    KEEL_INT(keel_confusion, class_id, "null", 0, 1e9, "look at this class alone")
#define KEEL_CONFUSION_TOP                                                                         \
    KEEL_INT(keel_confusion, top_k, "null", 1, 1e9,                                                \
             "the k largest predictions are the positive ones")

/* keel_type.ready of a count, which has no other arguments than thresholds; and of a metric at a
 * least rate, which has no top_k. */
keel_status keel_confusion_count(void *args);
keel_status keel_confusion_at_least(void *args);

int64_t keel_confusion_thresholds(const keel_confusion *a); /* how many */
/* Whether the thresholds are evenly from 0 to 1, which Keras asks of given ones, too: then it moves
 * predictions into that range. */
bool keel_confusion_is_even(const keel_confusion *a);
int64_t keel_confusion_sums(const void *args, int64_t last);
keel_status keel_confusion_check(const void *args, int64_t last); /* of class_id */
void keel_confusion_add(const keel_loss_call *c, int real, double *sum);

/* The functions of a metric whose args are a keel_confusion, but for its result. */
#define KEEL_CONFUSION_METRIC                                                                      \
    .unmasked = true, .check = keel_confusion_check, .sums = keel_confusion_sums,                  \
    .add = keel_confusion_add

/* The fields of a count, and of a metric at a least rate, which is the argument `key`. */
extern const keel_field keel_confusion_count_fields[];
#define KEEL_CONFUSION_AT_LEAST(key_)                                                              \
    { .key = key_,                                                                                 \
      .kind = KEEL_FIELD_FLOAT,                                                                    \
      .offset = offsetof(keel_confusion, least),                                                   \
      .max = 1,                                                                                    \
      .help = "the least " key_ },                                                                 \
        KEEL_INT(keel_confusion, num_thresholds, "200", 1, 1e6, "how many thresholds are tried"),  \
        KEEL_CONFUSION_CLASS, KEEL_METRIC_FIELDS

/* The counts at one threshold. */
typedef struct keel_counts {
    double true_positives, false_positives, true_negatives, false_negatives;
} keel_counts;

/* The counts above threshold i from those above i + 1; begin with i = n - 1 and all zeros, in which
 * keel_confusion_none puts the negatives. `sum` is one histogram of n thresholds. */
keel_counts keel_confusion_none(const double *sum, int64_t n);
void keel_confusion_down(keel_counts *c, const double *sum, int64_t n, int64_t i);
/* The counts at threshold i of the arguments, in whose order they are. */
keel_counts keel_confusion_above(const void *args, const double *sum, int64_t i);
int64_t keel_confusion_values(const void *args, int64_t n); /* one for each threshold */

/* The results of a metric that is OF(counts) at each threshold. */
#define KEEL_CONFUSION_RESULTS(OF)                                                                 \
    static double value(const void *args, const double *sum, int64_t n, int64_t i)                 \
    {                                                                                              \
        (void)n;                                                                                   \
        const keel_counts c = keel_confusion_above(args, sum, i);                                  \
        return OF(&c);                                                                             \
    }                                                                                              \
    static double result(const void *args, const double *sum, int64_t n)                           \
    {                                                                                              \
        return value(args, sum, n, 0);                                                             \
    }

static inline double keel_ratio(double a, double b) /* 0 if b is 0 */
{
    return b != 0 ? a / b : 0;
}
static inline double keel_precision(const keel_counts *c)
{
    return keel_ratio(c->true_positives, c->true_positives + c->false_positives);
}
static inline double keel_recall(const keel_counts *c) /* sensitivity */
{
    return keel_ratio(c->true_positives, c->true_positives + c->false_negatives);
}
static inline double keel_specificity(const keel_counts *c)
{
    return keel_ratio(c->true_negatives, c->true_negatives + c->false_positives);
}

/* The largest `dependent` at thresholds where `constrained` is at least args->least; 0: nowhere. */
double keel_confusion_best(const void *args, const double *sum,
                           double (*constrained)(const keel_counts *c),
                           double (*dependent)(const keel_counts *c));

#endif
