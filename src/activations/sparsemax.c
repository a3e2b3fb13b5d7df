/* Projection of the last axis onto the simplex: y = max(x - tau(x), 0), sum y = 1. */
#include "activations/activation.h"
#include "ops/all.h"
#include "ops/args.h"

const keel_activation keel_activation_sparsemax = {
    .type = {
        .name = "sparsemax",
        .alias = "sparsemax",
        .module = "keras.activations",
        .help = "projection of the last axis onto the simplex",
    },
    .op = &keel_op_sparsemax,
    .op_args = &(const keel_axis_args){ .axis = -1 },
};
