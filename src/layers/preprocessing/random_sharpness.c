/* In training each image [H, W, C] becomes sharper or softer by a random amount. */
#include "layers/preprocessing/_random.h"

static const keel_field fields[] = {
    KEEL_FACTOR_FIELDS("0.5 is as before, 0 is soft: f for [0, f], or a pair"), { 0 }
};

static keel_status emit(keel_emit *e)
{
    const keel_factor_args *a = e->args;
    const keel_smooth_args op = {
        .sharpens = true, .size = { 3, 3 }, .range = { a->range }, .values = a->values
    };
    return keel_emit_chance(e, &keel_op_smooth, &op);
}

KEEL_FACTOR_LAYER(random_sharpness, "RandomSharpness", keel_factor_ready,
                  "Changes the sharpness of images by chance while training.");
