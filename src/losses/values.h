/* Losses and metrics that are a program of ops: a Functional model of targets and predictions gives
 * their values. It is emitted behind the output (train/scored.c), and its values are added up as
 * those of any loss. No file of Keras has them: the package for Python writes them for functions of
 * the caller's. */
#ifndef KEEL_LOSSES_VALUES_H
#define KEEL_LOSSES_VALUES_H
#include "losses/loss.h"

#define KEEL_VALUES "KeelValues" /* the class of both */

typedef struct keel_values_args {
    int reduction; /* of the loss */
    json_t *program;
} keel_values_args;

#define KEEL_VALUES_PROGRAM                                                                        \
    {                                                                                              \
        .key = "program", .kind = KEEL_FIELD_LIST, .offset = offsetof(keel_values_args, program),  \
        .count = KEEL_A_DICTIONARY,                                                                \
        .help = "a Functional model of y_true and y_pred whose output has a last dim of 1"         \
    }

/* It sees values as predictions, and needs no targets. metrics/metric.h has the metric. */
extern const keel_loss keel_loss_values;

#endif
