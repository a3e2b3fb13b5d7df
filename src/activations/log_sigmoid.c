/* Logarithm of the logistic function: y = -log(1 + exp(-x)). */
#include "activations/activation.h"
#include "ops/all.h"

const keel_activation keel_activation_log_sigmoid = {
    .type = {
        .name = "log_sigmoid",
        .alias = "log_sigmoid",
        .module = "keras.activations",
        .help = "logarithm of the logistic function",
    },
    .op = &keel_op_log_sigmoid,
};
