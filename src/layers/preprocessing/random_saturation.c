/* In training the saturation of each image [H, W, 3] is multiplied by a random number. */
#include "layers/preprocessing/_random.h"

static const keel_field fields[] = {
    KEEL_FACTOR_FIELDS("f multiplies by f / (1 - f): f for [-f, f], or a pair"), { 0 }
};

static keel_status emit(keel_emit *e)
{
    const keel_factor_args *a = e->args;
    const keel_recolor_args op = { .kind = KEEL_RECOLOR_SATURATE,
                                   .range = { a->range },
                                   .values = a->values };
    return keel_emit_recolor(e, &op);
}

KEEL_FACTOR_LAYER(random_saturation, "RandomSaturation", keel_factor_ready_signed,
                  "Changes the saturation of images by chance while training.");
