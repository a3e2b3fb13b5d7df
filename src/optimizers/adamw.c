/* AdamW; see adam_impl.c. */
#include "optimizers/adam_impl.h"

static const keel_field fields[] = {
    KEEL_OPTIMIZER_FIELDS(keel_adam, "0.001", "0.004"),
    KEEL_ADAM_FIELDS,
    { 0 },
};

const keel_optimizer keel_optimizer_adamw = {
    .type = {
        .name = "AdamW",
        .module = "keras.optimizers",
        .help = "steps of the mean gradient over the root of its mean square, with weight decay",
        .args_size = sizeof(keel_adam),
        .fields = fields,
    },
    .slots = keel_adam_slots,
    .apply = { keel_adam_apply_f32, keel_adam_apply_f64 },
    .move = { keel_adam_move_f32, keel_adam_move_f64 },
};
