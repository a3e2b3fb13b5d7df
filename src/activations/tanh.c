/* Hyperbolic tangent: y = tanh(x). */
#include "activations/activation.h"
#include "ops/all.h"

const keel_activation keel_activation_tanh = {
    .type = {
        .name = "tanh",
        .alias = "tanh",
        .module = "keras.activations",
        .help = "hyperbolic tangent",
    },
    .op = &keel_op_tanh,
};
