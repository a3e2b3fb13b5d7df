/* Gaussian error linear unit, exact: y = x (1 + erf(x / sqrt 2)) / 2. */
#include "activations/activation.h"
#include "ops/all.h"

const keel_activation keel_activation_gelu = {
    .type = {
        .name = "gelu",
        .alias = "gelu",
        .module = "keras.activations",
        .help = "Gaussian error linear unit, exact",
    },
    .op = &keel_op_gelu,
};
