/* Logistic function: y = 1 / (1 + exp(-x)). */
#include "activations/activation.h"
#include "ops/all.h"

const keel_activation keel_activation_sigmoid = {
    .type = {
        .name = "sigmoid",
        .alias = "sigmoid",
        .module = "keras.activations",
        .help = "logistic function",
    },
    .op = &keel_op_sigmoid,
};
