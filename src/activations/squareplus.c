/* Smooth rectifier with a square root: y = (x + sqrt(x^2 + 4)) / 2. */
#include "activations/activation.h"

const keel_activation keel_activation_squareplus = {
    .type = {
        .name = "squareplus",
        .alias = "squareplus",
        .module = "keras.activations",
        .help = "smooth rectifier with a square root",
    },
    .op = "squareplus",
};
