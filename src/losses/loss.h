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

/* How the targets of a loss or metric lie beside the predictions, whose rows are elements of `last`
 * numbers each. */
typedef enum keel_target_kind {
    KEEL_TARGET_DENSE,   /* as predictions, but for one dim of 1 at the end: Keras squeezes it */
    KEEL_TARGET_ONE_HOT, /* exactly as predictions */
    KEEL_TARGET_LABEL,   /* a number of a class for each element, of any type */
} keel_target_kind;

/* Elements of one row that share one weight: what a loss or metric is written for. */
typedef struct keel_elements {
    const void *args;
    int64_t count, last; /* elements; numbers of each */
    const void *y_pred;  /* [count][last] */
    const void *y_true;  /* [count][last] of the predictions' type; labels: of all elements ... */
    keel_dtype label_dtype;
    int64_t first;    /* ... of which these begin at this one */
    int64_t row;      /* of the step, for messages */
    double scale;     /* of the gradient */
    void *grad;       /* [count][last], overwritten; NULL: not asked */
    int64_t left_out; /* out, 0 before: elements that count nowhere (ignore_class) */
} keel_elements;

/* The sum of the losses (or of a metric's values) of the elements; their gradient times `scale`
 * goes to `grad`. */
typedef double (*keel_elements_run)(keel_elements *e);

typedef struct keel_loss_call {
    const void *args;
    const keel_spec *prediction, *target; /* of one row */
    int64_t rows;
    int64_t row;        /* of the step: this call's first row, for messages */
    const void *y_pred; /* [rows, prediction] */
    const void *y_true; /* [rows, target] */
    const void *weight; /* [rows, weights] real; NULL: all one */
    int64_t weights;    /* of a row: 0 or 1, or more, each for as many elements as the others */
    const void *mask;   /* [rows, masks] real; 0: the element counts nowhere; NULL: all count */
    int64_t masks;
    double seed; /* multiply the gradient by this: 1, or loss weight over divisor */
    void *grad;  /* [rows, prediction], of seed * sum(w * loss), overwritten; NULL: not asked */
    double *sum; /* [3] added to: sum(w * loss), count of loss elements, sum of the
                    weights of the loss elements */
} keel_loss_call;

typedef struct keel_loss {
    keel_type type;          /* fields include reduction */
    size_t reduction_offset; /* of the keel_reduction (an int of a KEEL_CHOICE) in args */
    keel_target_kind target;
    keel_elements_run of[2]; /* float32, float64 */
    bool left_out;           /* it may leave elements out, so that data decide on the divisor */
    /* Cross-entropies: the same args but from_logits = true, for a prediction that is the softmax
     * or sigmoid of a known value (as Keras does with TensorFlow). logits_of: the op that
     * makes probabilities of logits, softmax or sigmoid; NULL: none. */
    const keel_op *logits_of;
    void (*use_logits)(void *args);
    bool (*has_logits)(const void *args);
} keel_loss;

/* The arguments of a loss that has no others than a reduction. */
typedef struct keel_loss_plain {
    int reduction;
} keel_loss_plain;
extern const keel_field keel_loss_plain_fields[];

extern const keel_loss *const keel_losses[]; /* generated; ends with NULL */
const keel_type *keel_loss_find(const char *name);

/* Do prediction and target fit, and can the reduction train? *elements: loss elements of one row.
 */
keel_status keel_loss_check(const keel_loss *l, const void *args, const keel_spec *prediction,
                            const keel_spec *target, int64_t *elements);
/* Losses of rows, with weights and mask. real: 0 float32, 1 float64. Shapes were checked. */
void keel_loss_run(const keel_loss *l, int real, const keel_loss_call *c);
/* Is the divisor known from the number of rows alone? */
bool keel_loss_counts_rows(const keel_loss *l, const void *args);

/* What divides sum[0]: by the reduction of the loss's args; 0 where the step has no weight at all.
 */
double keel_loss_divisor(const keel_loss *l, const void *args, const double sum[3]);

/* For losses and metrics: a row is `elements` groups of `last` numbers. */
typedef struct keel_dense {
    int64_t elements, last;
} keel_dense;

/* How a row of predictions and its targets line up; `name` is for the message. */
keel_status keel_target_check(keel_target_kind kind, const char *name, const keel_spec *prediction,
                              const keel_spec *target, keel_dense *out);
/* Rows through `run`, cut where the weight of elements changes. c->sum and c->grad get what
 * they would of keel_loss_call, not divided by anything. */
void keel_elements_of_rows(keel_elements_run run, keel_target_kind kind, const keel_loss_call *c,
                           int real);
double keel_label_at(const void *y_true, keel_dtype dtype, int64_t i); /* as a number */
/* Fail the step: the label of a row is the number of no class. */
void keel_label_refuse(double label, int64_t row, int64_t classes);

#endif
