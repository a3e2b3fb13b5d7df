/* Rectifier: y = max(x, 0). */
#include "activations/activation.h"

const keel_activation keel_activation_relu = {
    .type = {
        .name = "relu",
        .alias = "relu",
        .module = "keras.activations",
        .help = "rectifier",
    },
    .op = "relu",
};
