/* Loss and metrics as ops of a graph, so that the program runs them like any other. */
#ifndef KEEL_TRAIN_SCORE_H
#define KEEL_TRAIN_SCORE_H
#include "losses/loss.h"
#include "metrics/metric.h"
#include "ops/op.h"

enum { KEEL_LOSS_SUMS = 3 };

typedef struct keel_loss_args {
    const keel_loss *loss;
    const void *args; /* of the loss; borrowed */
} keel_loss_args;

typedef struct keel_metric_args {
    const keel_metric *metric;
    const void *args;
    bool weighted;
} keel_metric_args;

/* Inputs: predictions, targets, row weights. Sums: those of the loss or metric. */
extern const keel_op keel_loss_op;
extern const keel_op keel_metric_op;

#endif
