/* Identity: y = x. */
#include "activations/activation.h"

const keel_activation keel_activation_linear = {
    .type = {
        .name = "linear",
        .alias = "linear",
        .module = "keras.activations",
        .help = "identity",
    },
    .op = NULL, /* nothing is computed */
};
