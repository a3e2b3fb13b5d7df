/* In training some images [H, W, C] are seen from a random angle: their corners move by random
 * parts of their coordinates. Places outside of the image get fill_value. */
#include "layers/preprocessing/_random.h"

typedef struct args_t {
    keel_reals factor;
    keel_range probability;
    double scale, fill_value;
    int interpolation, data_format;
} args_t;

static const keel_field fields[] = {
    KEEL_FACTOR(args_t, factor, "1.0", "how probable it is: f for [0, f], or a pair"),
    KEEL_FLOAT(args_t, scale, "1.0", 0, 1, "corners move by up to half of it"),
    KEEL_CHOICE(args_t, interpolation, "\"bilinear\"", "bilinear|nearest", "between pixels"),
    KEEL_FLOAT(args_t, fill_value, "0.0", 0, 0, "what is beyond the image"),
    KEEL_IGNORE("seed", "the seed of the run decides"),
    KEEL_DATA_FORMAT(args_t),
    { 0 },
};

static keel_status ready(void *args)
{
    args_t *a = args;
    return keel_factor_range(&a->probability, &a->factor, "factor", (keel_range){ 0, 1 }, false);
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_warp_look look = { KEEL_FILL_CONSTANT, a->interpolation, a->fill_value };
    const keel_warp_args op = { .kind = KEEL_WARP_LEAN,
                                .range = {
                                    a->probability, { 0, 1 }, { -a->scale / 2, a->scale / 2 } } };
    return keel_emit_warp(e, &op, &look);
}

const keel_layer keel_layer_random_perspective = {
    .type = { KEEL_LAYER_HEAD("RandomPerspective",
                              "Shows images from aside by chance while training."),
              .args_size = sizeof(args_t), .fields = fields, .ready = ready },
    .min_inputs = 1,
    .max_inputs = 1,
    .by_chance = true,
    .emit = emit,
};
