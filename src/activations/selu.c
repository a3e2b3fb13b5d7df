/* Scaled exponential linear unit: y = 1.05070098 (x > 0 ? x : 1.67326324 (exp(x) - 1)). */
#include "activations/activation.h"
#include "ops/all.h"

const keel_activation keel_activation_selu = {
    .type = {
        .name = "selu",
        .alias = "selu",
        .module = "keras.activations",
        .help = "scaled exponential linear unit",
    },
    .op = &keel_op_selu,
};
