/* Sigmoid linear unit: y = x sigmoid(x). */
#include "activations/activation.h"
#include "ops/all.h"

const keel_activation keel_activation_silu = {
    .type = {
        .name = "silu",
        .alias = "swish",
        .module = "keras.activations",
        .help = "sigmoid linear unit",
    },
    .op = &keel_op_silu,
};
