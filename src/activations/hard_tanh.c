/* Piecewise linear hyperbolic tangent: y = min(max(x, -1), 1). */
#include "activations/activation.h"
#include "ops/all.h"

const keel_activation keel_activation_hard_tanh = {
    .type = {
        .name = "hard_tanh",
        .alias = "hard_tanh",
        .module = "keras.activations",
        .help = "x clipped to -1..1",
    },
    .op = &keel_op_hard_tanh,
};
