/* Keras's named activations: what Activation(...) and activation= accept. One file each; each names
 * the op that does its mathematics. */
#ifndef KEEL_ACTIVATIONS_ACTIVATION_H
#define KEEL_ACTIVATIONS_ACTIVATION_H
#include "base/field.h"
#include "ops/op.h"

typedef struct keel_activation {
    keel_type type;      /* name = alias = Keras's function name: "relu", "leaky_relu" */
    const keel_op *op;   /* NULL: linear, nothing is computed */
    const void *op_args; /* the op's args for Keras's defaults; NULL: those of the keel_object
                            (threshold), zeros where it has none */
} keel_activation;

extern const keel_activation *const keel_activations[]; /* generated; ends with NULL */
const keel_type *keel_activation_find(const char *name);

#endif
