/* Soft shrinkage, toward 0 by 0.5: y = x > 0.5 ? x - 0.5 : x < -0.5 ? x + 0.5 : 0. */
#include "activations/activation.h"
#include "ops/all.h"
#include "ops/args.h"

const keel_activation keel_activation_soft_shrink = {
    .type = {
        .name = "soft_shrink",
        .alias = "soft_shrink",
        .module = "keras.activations",
        .help = "soft shrinkage: x moved toward 0 by 0.5",
    },
    .op = &keel_op_soft_shrink,
    .op_args = &(const keel_threshold_args){ .threshold = 0.5 },
};
