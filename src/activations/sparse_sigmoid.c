/* Ramp from -1 to 1: y = min(max((x + 1) / 2, 0), 1). */
#include "activations/activation.h"
#include "ops/all.h"

const keel_activation keel_activation_sparse_sigmoid = {
    .type = {
        .name = "sparse_sigmoid",
        .alias = "sparse_sigmoid",
        .module = "keras.activations",
        .help = "linear ramp from -1 to 1",
    },
    .op = &keel_op_sparse_sigmoid,
};
