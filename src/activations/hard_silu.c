/* X times the hard sigmoid: y = x min(max(x / 6 + 1/2, 0), 1). */
#include "activations/activation.h"
#include "ops/all.h"

const keel_activation keel_activation_hard_silu = {
    .type = {
        .name = "hard_silu",
        .alias = "hard_swish",
        .module = "keras.activations",
        .help = "x times the hard sigmoid",
    },
    .op = &keel_op_hard_silu,
};
