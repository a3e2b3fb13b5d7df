/* Adam; see adam_impl.c. */
#include "optimizers/adam_impl.h"

static const keel_field fields[] = {
    KEEL_OPTIMIZER_FIELDS(keel_adam, "0.001", "null"),
    KEEL_ADAM_FIELDS,
    { 0 },
};

const keel_optimizer keel_optimizer_adam = {
    .type = {
        .name = "Adam",
        .module = "keras.optimizers",
        .help = "steps of the mean gradient over the root of its mean square",
        .args_size = sizeof(keel_adam),
        .fields = fields,
    },
    .slots = keel_adam_slots,
    .apply = { keel_adam_apply_f32, keel_adam_apply_f64 },
    .move = { keel_adam_move_f32, keel_adam_move_f64 },
};
