/* The layer Softmax as the activation of another: over the last axis, since another would depend on
 * the dims of its input. */
#include "activations/_layer.h"
#include "ops/all.h"
#include "ops/args.h"

static const keel_field fields[] = {
    KEEL_REFUSE("axis", "-1", "an axis as a layer that is an activation"),
    KEEL_OF_A_LAYER,
    { 0 },
};

const keel_activation keel_activation_softmax_layer = {
    .type = { .name = "Softmax",
              .module = "keras.layers",
              .help = "probabilities over the last axis",
              .fields = fields },
    .op = &keel_op_softmax,
    .op_args = &(const keel_axis_args){ .axis = -1 },
};
