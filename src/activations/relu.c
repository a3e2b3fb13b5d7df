/* Rectifier: y = max(x, 0). */
#include "activations/activation.h"
#include "ops/all.h"

const keel_activation keel_activation_relu = {
    .type = {
        .name = "relu",
        .alias = "relu",
        .module = "keras.activations",
        .help = "rectifier",
    },
    .op = &keel_op_relu,
};
