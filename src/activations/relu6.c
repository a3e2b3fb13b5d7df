/* Rectifier, limited to 6: y = min(max(x, 0), 6). */
#include "activations/activation.h"
#include "ops/all.h"

const keel_activation keel_activation_relu6 = {
    .type = {
        .name = "relu6",
        .alias = "relu6",
        .module = "keras.activations",
        .help = "rectifier, limited to 6",
    },
    .op = &keel_op_relu6,
};
