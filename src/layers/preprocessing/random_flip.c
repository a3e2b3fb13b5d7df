/* In training each image [H, W, C] is mirrored with probability 1/2, across, down, or both at once;
 * which ones is a function of seed, epoch, layer and row. */
#include "layers/preprocessing/_random.h"

typedef struct args_t {
    int mode, data_format;
} args_t;

static const keel_field fields[] = {
    KEEL_CHOICE(args_t, mode, "\"horizontal_and_vertical\"",
                "horizontal_and_vertical|horizontal|vertical", "across, down, or both at once"),
    KEEL_IGNORE("seed", "the seed of the run decides"),
    KEEL_DATA_FORMAT(args_t),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_warp_args op = { .kind = KEEL_WARP_FLIP,
                                .range = { { 0, 1 } },
                                .across = a->mode != 2,
                                .down = a->mode != 1,
                                .nearest = true };
    return keel_emit_warp(e, &op, NULL);
}

const keel_layer keel_layer_random_flip = {
    .type = { KEEL_LAYER_HEAD("RandomFlip", "Mirrors images by chance while training."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .by_chance = true,
    .emit = emit,
};
