/* Ramp from -1 to 1: y = min(max((x + 1) / 2, 0), 1). */
#include "activations/activation.h"

const keel_activation keel_activation_sparse_sigmoid = {
    .type = {
        .name = "sparse_sigmoid",
        .alias = "sparse_sigmoid",
        .module = "keras.activations",
        .help = "ramp from -1 to 1",
    },
    .op = "sparse_sigmoid",
};
