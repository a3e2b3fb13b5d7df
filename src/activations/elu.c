/* Exponential linear unit: y = x > 0 ? x : exp(x) - 1. */
#include "activations/activation.h"
#include "ops/all.h"
#include "ops/args.h"

const keel_activation keel_activation_elu = {
    .type = {
        .name = "elu",
        .alias = "elu",
        .module = "keras.activations",
        .help = "exponential linear unit",
    },
    .op = &keel_op_elu,
    .op_args = &(const keel_alpha_args){ .alpha = 1 },
};
