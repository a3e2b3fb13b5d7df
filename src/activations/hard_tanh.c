/* X between -1 and 1: y = min(max(x, -1), 1). */
#include "activations/activation.h"
#include "ops/all.h"

const keel_activation keel_activation_hard_tanh = {
    .type = {
        .name = "hard_tanh",
        .alias = "hard_tanh",
        .module = "keras.activations",
        .help = "x between -1 and 1",
    },
    .op = &keel_op_hard_tanh,
};
