/* Smooth rectifier with a square root: y = (x + sqrt(x^2 + 4)) / 2. */
#include "activations/activation.h"
#include "ops/all.h"
#include "ops/args.h"

const keel_activation keel_activation_squareplus = {
    .type = {
        .name = "squareplus",
        .alias = "squareplus",
        .module = "keras.activations",
        .help = "smooth rectifier with a square root",
    },
    .op = &keel_op_squareplus,
    .op_args = &(const keel_squareplus_args){ .b = 4 },
};
