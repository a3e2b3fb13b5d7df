/* Difference to the hyperbolic tangent: y = x - tanh(x). */
#include "activations/activation.h"
#include "ops/all.h"

const keel_activation keel_activation_tanh_shrink = {
    .type = {
        .name = "tanh_shrink",
        .alias = "tanh_shrink",
        .module = "keras.activations",
        .help = "x - tanh(x)",
    },
    .op = &keel_op_tanh_shrink,
};
