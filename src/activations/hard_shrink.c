/* Hard shrinkage: y = |x| > 0.5 ? x : 0. */
#include "activations/activation.h"
#include "ops/all.h"
#include "ops/args.h"

const keel_activation keel_activation_hard_shrink = {
    .type = {
        .name = "hard_shrink",
        .alias = "hard_shrink",
        .module = "keras.activations",
        .help = "hard shrinkage: 0 where |x| is at most 0.5, else x",
    },
    .op = &keel_op_hard_shrink,
    .op_args = &(const keel_threshold_args){ .threshold = 0.5 },
};
