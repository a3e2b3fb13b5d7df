/* First half of the last axis gated by the second: y = a sigmoid(b). */
#include "activations/activation.h"
#include "ops/all.h"
#include "ops/args.h"

const keel_activation keel_activation_glu = {
    .type = {
        .name = "glu",
        .alias = "glu",
        .module = "keras.activations",
        .help = "first half of the last axis gated by the second",
    },
    .op = &keel_op_glu,
    .op_args = &(const keel_axis_args){ .axis = -1 },
};
