/* Keras's named activations, as Activation(...) and activation= take them, and the layers that may
 * stand there (_layer.h). One file each, which names the op that computes it. */
#ifndef KEEL_ACTIVATIONS_ACTIVATION_H
#define KEEL_ACTIVATIONS_ACTIVATION_H
#include "base/field.h"
#include "ops/op.h"

typedef struct keel_activation {
    keel_type type;      /* name = alias = Keras's function name: "relu", "leaky_relu" */
    const keel_op *op;   /* NULL: linear, no op */
    bool has_axis;       /* its args begin with an int64_t axis, counted with the batch */
    const void *op_args; /* the op's args for Keras's defaults; NULL: the args of the keel_object
                            (threshold), or zeros */
} keel_activation;

extern const keel_activation *const keel_activations[]; /* generated; ends with NULL */
const keel_type *keel_activation_find(const char *name);

#endif
