/* What layers that drop numbers share. */
#ifndef KEEL_LAYERS_REGULARIZATION_DROPOUT_H
#define KEEL_LAYERS_REGULARIZATION_DROPOUT_H
#include "layers/layer.h"

/* What a layer that made a Dropout can tell it: to emit an op that drops by itself, on all inputs
 * of the call. The op then draws what the layer would draw. */
typedef struct keel_dropout_how {
    const keel_op *op;
    const void *args; /* of that op */
} keel_dropout_how;

/* Keras's noise_shape, which layers that drop share: the field, and its meaning for input 0. */
#define KEEL_NOISE_SHAPE(args)                                                                     \
    KEEL_INTS(args, noise_shape, -3, "null", -1, 1e15,                                             \
              "with the batch first (null or -1): a dim of 1 shares its draw")
keel_status keel_noise_shape(const keel_emit *e, const keel_ints *given, keel_shape *out);

/* KEEL_EUNSUP: with that rate it would draw for whole numbers, with which Keras fails. */
static inline keel_status keel_emit_drawn(const keel_emit *e, double rate)
{
    if (!e->training || rate <= 0) return KEEL_OK;
    return keel_emit_not_whole(e, "Keras fails to train it with them");
}

#endif
