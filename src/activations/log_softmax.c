/* Logarithm of the softmax over the last axis: y = x - log(sum(exp(x))). */
#include "activations/activation.h"
#include "ops/all.h"
#include "ops/args.h"

const keel_activation keel_activation_log_softmax = {
    .type = {
        .name = "log_softmax",
        .alias = "log_softmax",
        .module = "keras.activations",
        .help = "logarithm of the softmax over the last axis",
    },
    .op = &keel_op_log_softmax,
    .op_args = &(const keel_axis_args){ .axis = -1 },
};
