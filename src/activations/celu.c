/* Continuously differentiable exponential linear unit: y = max(x, 0) + min(exp(x) - 1, 0). */
#include "activations/activation.h"
#include "ops/all.h"
#include "ops/args.h"

const keel_activation keel_activation_celu = {
    .type = {
        .name = "celu",
        .alias = "celu",
        .module = "keras.activations",
        .help = "continuously differentiable exponential linear unit",
    },
    .op = &keel_op_celu,
    .op_args = &(const keel_alpha_args){ .alpha = 1 },
};
