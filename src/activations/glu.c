/* Gated linear unit over the halves a, b of the last axis: y = a sigmoid(b). */
#include "activations/activation.h"
#include "ops/all.h"
#include "ops/args.h"

const keel_activation keel_activation_glu = {
    .type = {
        .name = "glu",
        .alias = "glu",
        .module = "keras.activations",
        .help = "gated linear unit: the first half of the last axis times the sigmoid of the second",
    },
    .op = &keel_op_glu,
    .op_args = &(const keel_axis_args){ .axis = -1 },
};
