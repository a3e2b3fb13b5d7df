/* Smooth rectifier with a parabola: y = x <= -1 ? 0 : x < 1 ? (x + 1)^2 / 4 : x. */
#include "activations/activation.h"
#include "ops/all.h"

const keel_activation keel_activation_sparse_plus = {
    .type = {
        .name = "sparse_plus",
        .alias = "sparse_plus",
        .module = "keras.activations",
        .help = "smooth rectifier with a parabola",
    },
    .op = &keel_op_sparse_plus,
};
