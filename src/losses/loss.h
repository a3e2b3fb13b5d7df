/* A loss gives, for each row of predictions, numerator and gradient of the numerator; the division
 * is done once, for the whole global batch, after everybody's sums are added (rule 2). */
#ifndef KEEL_LOSSES_LOSS_H
#define KEEL_LOSSES_LOSS_H
#include "base/field.h"
#include "ops/op.h"

typedef enum keel_reduction {
    KEEL_SUM_OVER_BATCH_SIZE,     /* divide by the count of loss elements */
    KEEL_REDUCTION_SUM,           /* divide by one */
    KEEL_MEAN_WITH_SAMPLE_WEIGHT, /* divide by the sum of weights */
    KEEL_REDUCTION_MEAN,          /* sum_over_batch_size by another name */
    KEEL_REDUCTION_NONE,          /* refused by check */
} keel_reduction;

/* The fields of every Keras loss; `reduction` is an int. */
#define KEEL_LOSS_FIELDS(args)                                                                     \
    KEEL_CHOICE(args, reduction, "\"sum_over_batch_size\"",                                        \
                "sum_over_batch_size|sum|mean_with_sample_weight|mean|none",                       \
                "what the sum over the batch is divided by"),                                      \
        KEEL_IGNORE("name", "of the loss"),                                                        \
        KEEL_REFUSE("dtype", "null", "losses run in the type of the predictions")

typedef struct keel_loss_call {
    const void *args;
    const keel_spec *prediction,
        *target; /* of one row; targets are real or int, as the loss says */
    int64_t rows;
    int64_t row;        /* of the step: this call's first row, for messages */
    const void *y_pred; /* [rows, prediction] */
    const void *y_true; /* [rows, target], same real type as predictions */
    const void *weight; /* [rows] real; NULL: all one */
    double seed;        /* multiply the gradient by this: 1, or loss weight over divisor */
    void *grad;  /* [rows, prediction], of seed * sum(w * loss), overwritten; NULL: not asked */
    double *sum; /* [3] added to: sum(w * loss), count of loss elements, sum of the
                    weights of the loss elements */
} keel_loss_call;

typedef void (*keel_loss_run)(const keel_loss_call *c);

typedef struct keel_loss {
    keel_type type;          /* fields include reduction */
    size_t reduction_offset; /* of the keel_reduction (an int of a KEEL_CHOICE) in args */
    /* Do prediction and target fit? Fills *target with what the loss wants where the user gave an
     * equivalent (labels [B] for [B,1]); *elements: loss elements of one row. */
    keel_status (*check)(const void *args, const keel_spec *prediction, const keel_spec *target,
                         int64_t *elements);
    keel_loss_run run[2]; /* float32, float64 */
    /* Cross-entropies: the same args but from_logits = true, for a prediction that is the softmax
     * or sigmoid of a known value (as Keras does with TensorFlow). logits_of: the op that
     * makes probabilities of logits, softmax or sigmoid; NULL: none. */
    const keel_op *logits_of;
    void (*use_logits)(void *args);
    bool (*has_logits)(const void *args);
} keel_loss;

extern const keel_loss *const keel_losses[]; /* generated; ends with NULL */
const keel_type *keel_loss_find(const char *name);

/* What divides sum[0]: by the reduction of the loss's args; 0 where the step has no weight at all.
 */
double keel_loss_divisor(const keel_loss *l, const void *args, const double sum[3]);

/* For losses and metrics: a row is `elements` groups of `last` numbers. */
typedef struct keel_dense {
    int64_t elements, last;
} keel_dense;

/* Targets like predictions, but for one dim of 1 at the end (as Keras squeezes and expands). */
keel_status keel_loss_dense(const char *loss, const keel_spec *prediction, const keel_spec *target,
                            keel_dense *out);
/* Targets are labels: predictions without their last dim, or 1 in its place; of any type. */
keel_status keel_loss_sparse(const char *loss, const keel_spec *prediction, const keel_spec *target,
                             keel_dense *out);
double keel_label_at(const void *y_true, keel_dtype dtype, int64_t i); /* as a number */
keel_status keel_loss_check_reduction(const char *loss, int reduction);

#endif
