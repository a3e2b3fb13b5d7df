/* In training each image [H, W, C] is turned about its middle by a random angle. */
#include "layers/preprocessing/_random.h"

typedef struct args_t {
    keel_reals factor;
    keel_range turns;
    keel_warp_look look;
    int data_format;
} args_t;

static const keel_field fields[] = {
    KEEL_FACTOR(args_t, factor, NULL, "angles in full turns: f for [-f, f], or a pair"),
    KEEL_WARP_FIELDS(args_t, look),
    KEEL_IGNORE("seed", "the seed of the run decides"),
    KEEL_DATA_FORMAT(args_t),
    { 0 },
};

static keel_status ready(void *args)
{
    args_t *a = args;
    return keel_factor_range(&a->turns, &a->factor, "factor", (keel_range){ -1, 1 }, false);
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_warp_args op = { .kind = KEEL_WARP_ROTATE,
                                .range = { { 360 * a->turns.low, 360 * a->turns.high } } };
    return keel_emit_warp(e, &op, &a->look);
}

const keel_layer keel_layer_random_rotation = {
    .type = { KEEL_LAYER_HEAD("RandomRotation", "Turns images by chance while training."),
              .args_size = sizeof(args_t), .fields = fields, .ready = ready },
    .min_inputs = 1,
    .max_inputs = 1,
    .by_chance = true,
    .emit = emit,
};
