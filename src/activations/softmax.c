/* Softmax over the last axis: y = exp(x) / sum(exp(x)). */
#include "activations/activation.h"
#include "ops/all.h"
#include "ops/args.h"

const keel_activation keel_activation_softmax = {
    .type = {
        .name = "softmax",
        .alias = "softmax",
        .module = "keras.activations",
        .help = "probabilities over the last axis",
    },
    .op = &keel_op_softmax,
    .op_args = &(const keel_axis_args){ .axis = -1 },
};
