/* Leaky rectifier, slope 0.2 for negative x: y = x > 0 ? x : 0.2 x. */
#include "activations/activation.h"
#include "ops/all.h"
#include "ops/args.h"

const keel_activation keel_activation_leaky_relu = {
    .type = {
        .name = "leaky_relu",
        .alias = "leaky_relu",
        .module = "keras.activations",
        .help = "leaky rectifier, slope 0.2 for negative x",
    },
    .op = &keel_op_leaky_relu,
    .op_args = &(const keel_leaky_relu_args){ .negative_slope = 0.2 },
};
