/* Losses and metrics as ops, so that a program runs them as any other op. */
#ifndef KEEL_TRAIN_SCORE_H
#define KEEL_TRAIN_SCORE_H
#include "losses/loss.h"
#include "metrics/metric.h"
#include "ops/op.h"

enum { KEEL_LOSS_SUMS = 3, KEEL_LOSS_TERMS = 2 };

typedef struct keel_loss_args {
    const keel_loss *loss;
    const void *args; /* of the loss; borrowed */
    int index;        /* of the loss in keel_step_facts */
    double weight;    /* of the loss in the sum of all losses */
    bool meets;       /* its divisor depends on all rows, so workers meet before backward */
    int64_t rows;     /* of the largest step */
} keel_loss_args;

typedef struct keel_metric_args {
    const keel_metric *metric;
    const void *args;
    bool weighted;
} keel_metric_args;

/* Inputs of such an op: predictions, targets, row weights, and an optional mask. Its sums are those
 * of the loss or metric. */
enum { KEEL_SCORE_PREDICTION, KEEL_SCORE_TARGET, KEEL_SCORE_WEIGHT, KEEL_SCORE_MASK };
extern const keel_op keel_loss_op;
extern const keel_op keel_metric_op;
extern const keel_op keel_metric_merged_op; /* of a metric with `merge` */

/* For kernels of keel_loss_op: the call for all rows of c, without sums. gradients: it is not about
 * the terms of the divisor, which rows leave before there are gradients. */
keel_loss_call keel_loss_call_of(const keel_call *c, int real, bool gradients);

#endif
