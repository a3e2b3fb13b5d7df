/* What a layer that made a Dropout can tell it: to emit an op that drops by itself, on all inputs
 * of the call. The op then draws what the layer would draw. */
#ifndef KEEL_LAYERS_REGULARIZATION_DROPOUT_H
#define KEEL_LAYERS_REGULARIZATION_DROPOUT_H
#include "ops/op.h"

typedef struct keel_dropout_how {
    const keel_op *op;
    const void *args; /* of that op */
} keel_dropout_how;

#endif
