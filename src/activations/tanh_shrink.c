/* What the hyperbolic tangent leaves: y = x - tanh(x). */
#include "activations/activation.h"
#include "ops/all.h"

const keel_activation keel_activation_tanh_shrink = {
    .type = {
        .name = "tanh_shrink",
        .alias = "tanh_shrink",
        .module = "keras.activations",
        .help = "what the hyperbolic tangent leaves",
    },
    .op = &keel_op_tanh_shrink,
};
