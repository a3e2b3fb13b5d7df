/* In training each image [H, W, C] is moved down and to the right by random parts of its height and
 * width. */
#include "layers/preprocessing/_random.h"

typedef struct args_t {
    keel_reals height_factor, width_factor;
    keel_range height, width;
    keel_warp_look look;
    int data_format;
} args_t;

static const keel_field fields[] = {
    KEEL_FACTOR(args_t, height_factor, NULL, "down, 0.2 for 20%: f for [-f, f], or a pair"),
    KEEL_FACTOR(args_t, width_factor, NULL, "to the right, the same"),
    KEEL_WARP_FIELDS(args_t, look),
    KEEL_IGNORE("seed", "the seed of the run decides"),
    KEEL_DATA_FORMAT(args_t),
    { 0 },
};

static keel_status ready(void *args)
{
    args_t *a = args;
    KEEL_TRY(keel_factor_range(&a->height, &a->height_factor, "height_factor",
                               (keel_range){ -1, 1 }, true));
    return keel_factor_range(&a->width, &a->width_factor, "width_factor", (keel_range){ -1, 1 },
                             true);
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_warp_args op = { .kind = KEEL_WARP_TRANSLATE, .range = { a->height, a->width } };
    return keel_emit_warp(e, &op, &a->look);
}

const keel_layer keel_layer_random_translation = {
    .type = { KEEL_LAYER_HEAD("RandomTranslation", "Moves images by chance while training."),
              .args_size = sizeof(args_t), .fields = fields, .ready = ready },
    .min_inputs = 1,
    .max_inputs = 1,
    .by_chance = true,
    .emit = emit,
};
