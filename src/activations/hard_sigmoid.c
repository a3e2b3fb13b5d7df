/* Piecewise linear sigmoid: y = min(max(x / 6 + 1/2, 0), 1). */
#include "activations/activation.h"
#include "ops/all.h"

const keel_activation keel_activation_hard_sigmoid = {
    .type = {
        .name = "hard_sigmoid",
        .alias = "hard_sigmoid",
        .module = "keras.activations",
        .help = "piecewise linear sigmoid",
    },
    .op = &keel_op_hard_sigmoid,
};
