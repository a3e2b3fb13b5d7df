/* Logarithm of the logistic function: y = -log(1 + exp(-x)). */
#include "activations/activation.h"

const keel_activation keel_activation_log_sigmoid = {
    .type = {
        .name = "log_sigmoid",
        .alias = "log_sigmoid",
        .module = "keras.activations",
        .help = "logarithm of the logistic function",
    },
    .op = "log_sigmoid",
};
