/* Exponential function: y = exp(x). */
#include "activations/activation.h"
#include "ops/all.h"

const keel_activation keel_activation_exponential = {
    .type = {
        .name = "exponential",
        .alias = "exponential",
        .module = "keras.activations",
        .help = "exponential function",
    },
    .op = &keel_op_exponential,
};
