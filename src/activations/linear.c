/* The value itself: y = x. */
#include "activations/activation.h"

const keel_activation keel_activation_linear = {
    .type = {
        .name = "linear",
        .alias = "linear",
        .module = "keras.activations",
        .help = "the value itself",
    },
    .op = NULL, /* nothing is computed */
};
