/* Smooth rectifier: y = log(1 + exp(x)). */
#include "activations/activation.h"
#include "ops/all.h"

const keel_activation keel_activation_softplus = {
    .type = {
        .name = "softplus",
        .alias = "softplus",
        .module = "keras.activations",
        .help = "smooth rectifier",
    },
    .op = &keel_op_softplus,
};
