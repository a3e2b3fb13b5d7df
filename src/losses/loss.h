/* For each row of predictions a loss gives a numerator and its gradient. The sums of all workers
 * are added and then divided once, for the whole global batch (rule 2 of ARCHITECTURE.md). */
#ifndef KEEL_LOSSES_LOSS_H
#define KEEL_LOSSES_LOSS_H
#include "base/field.h"
#include "ops/op.h"

#define KEEL_EPSILON 1e-7 /* Keras's backend.epsilon() */

typedef enum keel_reduction {
    KEEL_SUM_OVER_BATCH_SIZE,     /* divide by the number of loss elements */
    KEEL_REDUCTION_SUM,           /* do not divide */
    KEEL_MEAN_WITH_SAMPLE_WEIGHT, /* divide by the sum of weights */
    KEEL_REDUCTION_MEAN,          /* another name of sum_over_batch_size */
    KEEL_REDUCTION_NONE,          /* do not divide, but log the mean */
} keel_reduction;

/* The fields of every Keras loss; `reduction` is an int. */
#define KEEL_LOSS_FIELDS(args)                                                                     \
    KEEL_CHOICE(args, reduction, "\"sum_over_batch_size\"",                                        \
                "sum_over_batch_size|sum|mean_with_sample_weight|mean|none",                       \
                "divisor of the sum over the batch"),                                              \
        KEEL_IGNORE("name", "of the loss"),                                                        \
        KEEL_REFUSE("dtype", "null",                                                               \
                    "Keras leaves it out of files; a loss has the type of the predictions")

/* The field of a loss or metric that runs along one dim; `axis` is an int64_t. */
#define KEEL_SCORE_AXIS(args)                                                                      \
    KEEL_INT(args, axis, "-1", -KEEL_RANK_MAX - 1, KEEL_RANK_MAX,                                  \
             "the dim it runs along, 0 being the batch")

/* How targets match predictions, whose rows are elements of `last` numbers each. */
typedef enum keel_target_kind {
    KEEL_TARGET_DENSE,   /* the shape of predictions; one may have a last dim of 1 more, as in Keras
                          */
    KEEL_TARGET_ONE_HOT, /* exactly the shape of predictions */
    KEEL_TARGET_LABEL,   /* a class number for each element, of any type */
    KEEL_TARGET_SYMBOLS, /* a row of class numbers for a row of steps: a row is one element */
} keel_target_kind;

/* Are targets whole numbers, of any type? */
static inline bool keel_target_is_labels(keel_target_kind kind)
{
    return kind == KEEL_TARGET_LABEL || kind == KEEL_TARGET_SYMBOLS;
}

/* Elements of one row that have the same weight: the unit that a loss or metric computes. */
typedef struct keel_elements {
    const void *args;
    int64_t count, last; /* elements; numbers per element */
    const void *y_pred;  /* [count][last] */
    const void *y_true;  /* [count][last] of the type of predictions; labels: of all rows */
    keel_dtype label_dtype;
    const keel_spec *prediction, *target; /* of one row */
    int64_t first;    /* labels: index in y_true of the first of these elements */
    int64_t row;      /* number in the step, for messages */
    void *scratch;    /* keel_loss.scratch bytes */
    bool weightless;  /* their weight is 0: only left_out is asked for */
    double scale;     /* the gradient is multiplied by this */
    void *grad;       /* [count][last], overwritten; NULL: not requested */
    int64_t left_out; /* output, 0 on entry: elements that do not count (ignore_class) */
} keel_elements;

/* Returns the sum of the losses (or metric values) of the elements and writes their gradient times
 * `scale` to `grad`. */
typedef double (*keel_elements_run)(keel_elements *e);

typedef struct keel_loss_call {
    const void *args;
    const keel_spec *prediction, *target; /* of one row */
    int64_t rows;
    int64_t row;        /* number in the step of the first row, for messages */
    const void *y_pred; /* [rows, prediction] */
    const void *y_true; /* [rows, target] */
    const void *weight; /* [rows, weights] real; NULL: all 1 */
    int64_t weights;    /* per row: 0 or 1, or several that share the elements evenly */
    const void *mask;   /* [rows, masks] real; 0: the element does not count; NULL: all count */
    int64_t masks;
    void *scratch; /* keel_loss.scratch bytes */
    double seed;   /* the gradient is multiplied by this: 1, or loss weight / divisor */
    void *grad;  /* [rows, prediction] of seed * sum(w * loss), overwritten; NULL: not requested */
    double *sum; /* [3] is increased by sum(w * loss), the number of loss elements, and the sum of
                    their weights */
} keel_loss_call;

/* A loss of all rows of a step together. Each row leaves a record, and before any loss is computed
 * the records of all rows are there: added up, or one behind the other in the order of the rows.
 * Rows are weighted as a whole, and are not masked. */
typedef struct keel_loss_all {
    int64_t rows;         /* of the step */
    double weights;       /* their sum */
    const double *record; /* added up; where they are gathered [rows][record] */
    void *scratch;        /* [rows][scratch] doubles */
} keel_loss_all;

typedef struct keel_loss_whole {
    int64_t (*record)(const void *args, const keel_spec *prediction); /* doubles of a row */
    bool gathers;
    int64_t scratch; /* doubles for each row */
    /* Overwrite the record of c's only row. */
    void (*leave)(const keel_loss_call *c, int real, double *record);
    /* Gradients and sums of c's rows; c->sum is [rows][3], overwritten. */
    void (*run)(const keel_loss_call *c, int real, const keel_loss_all *all);
    /* Of losses that leave rows out: the number of the step's loss elements and their weights. */
    void (*count)(const keel_loss_call *c, int real, const keel_loss_all *all, double sum[3]);
} keel_loss_whole;

typedef struct keel_loss {
    keel_type type;          /* fields include reduction */
    size_t reduction_offset; /* of the keel_reduction (an int of a KEEL_CHOICE) in args */
    keel_target_kind target;
    keel_elements_run of[2];      /* float32, float64 */
    const keel_loss_whole *whole; /* instead of `of` */
    /* Whether elements may be left out, so that the divisor depends on the data; NULL: never. */
    bool (*leaves_out)(const void *args);
    /* What a row's shapes must be beside the kind of target, and how many loss elements a row has;
     * NULL: those of the kind. */
    keel_status (*check)(const void *args, const keel_spec *prediction, const keel_spec *target,
                         int64_t *elements);
    /* Bytes that a row is computed in; NULL: none. */
    int64_t (*scratch)(const keel_spec *prediction, const keel_spec *target);
    /* Cross-entropies: the same args with from_logits = true, for a prediction that is the softmax
     * or sigmoid of a known value (as Keras does with TensorFlow). logits_of: the op that turns
     * logits into probabilities, softmax or sigmoid; NULL: none. */
    const keel_op *logits_of;
    size_t from_logits_offset; /* of that bool in args, if there is a logits_of */
    size_t axis_offset;        /* of that int64_t in args (losses/along.h); 0: none */
    /* The argument, if it is given, that Keras takes along the last dim whatever the axis is. */
    const char *(*along_last)(const void *args);
} keel_loss;

/* The arguments of a loss that has no others than a reduction. */
typedef struct keel_loss_plain {
    int reduction;
} keel_loss_plain;
extern const keel_field keel_loss_plain_fields[];

/* The arguments of a loss, or of a metric, that has no others than these. */
typedef struct keel_loss_with_axis {
    int reduction;
    int64_t axis;
} keel_loss_with_axis;

extern const keel_loss *const keel_losses[]; /* generated; ends with NULL */
const keel_type *keel_loss_find(const char *name);
const keel_type *keel_loss_registered(const char *name); /* _custom.c; NULL: none */

/* Check that prediction and target match. *elements: loss elements of one row. */
keel_status keel_loss_check(const keel_loss *l, const void *args, const keel_spec *prediction,
                            const keel_spec *target, int64_t *elements);
/* Compute the losses of rows, with weights and mask. real: 0 float32, 1 float64. The shapes must
 * have been checked. */
void keel_loss_run(const keel_loss *l, int real, const keel_loss_call *c);
keel_reduction keel_loss_reduction(const keel_loss *l, const void *args);
/* True if the divisor follows from the number of rows alone. */
bool keel_loss_counts_rows(const keel_loss *l, const void *args);

/* from_logits of args, of a loss that has logits_of. */
bool keel_loss_has_logits(const keel_loss *l, const void *args);
void keel_loss_use_logits(const keel_loss *l, void *args); /* it becomes true */

/* The divisor of sum[0], by the reduction in the loss's args; 0 if the weights of the step sum to
 * 0. */
double keel_loss_divisor(const keel_loss *l, const void *args, const double sum[3]);
/* That of the loss in logs, which differs without a reduction. */
double keel_loss_logged_divisor(const keel_loss *l, const void *args, const double sum[3]);
bool keel_loss_is_reduced(const keel_loss *l, const void *args); /* not "none" */

/* For losses and metrics: a row is `elements` groups of `last` numbers. */
typedef struct keel_dense {
    int64_t elements, last;
} keel_dense;

/* Check that a row of predictions and its targets match; `name` is for messages. */
keel_status keel_target_check(keel_target_kind kind, const char *name, const keel_spec *prediction,
                              const keel_spec *target, keel_dense *out);
/* Apply `run` to rows, in groups of elements of equal weight. c->sum and c->grad are as described
 * in keel_loss_call, without any division. */
void keel_elements_of_rows(keel_elements_run run, keel_target_kind kind, const keel_loss_call *c,
                           int real);
/* The weight of element e of row i of a call whose rows have so many elements: that of the row or
 * of its part; 0 if it is masked. */
double keel_element_weight(const keel_loss_call *c, int real, int64_t elements, int64_t i,
                           int64_t e);
/* Whether it counts: it is not masked. */
bool keel_element_counts(const keel_loss_call *c, int real, int64_t elements, int64_t i, int64_t e);
/* Number i of an array of float32 (real 0) or float64. */
static inline double keel_real_at(const void *x, int real, int64_t i)
{
    return real ? ((const double *)x)[i] : (double)((const float *)x)[i];
}
double keel_label_at(const void *y_true, keel_dtype dtype, int64_t i); /* as a number */
/* Fail the step: the label of a row is the number of no class. */
void keel_label_refuse(double label, int64_t row, int64_t classes);

#endif
