/* First half of the last axis gated by the second: y = a sigmoid(b). */
#include "activations/activation.h"

const keel_activation keel_activation_glu = {
    .type = {
        .name = "glu",
        .alias = "glu",
        .module = "keras.activations",
        .help = "first half of the last axis gated by the second",
    },
    .op = "glu",
};
