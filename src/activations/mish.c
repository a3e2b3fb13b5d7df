/* X times the hyperbolic tangent of its softplus: y = x tanh(log(1 + exp(x))). */
#include "activations/activation.h"
#include "ops/all.h"

const keel_activation keel_activation_mish = {
    .type = {
        .name = "mish",
        .alias = "mish",
        .module = "keras.activations",
        .help = "x times the hyperbolic tangent of its softplus",
    },
    .op = &keel_op_mish,
};
