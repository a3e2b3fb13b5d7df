/* In training each image [H, W, C] becomes brighter or darker by a random part of the range of
 * values. */
#include "layers/preprocessing/_random.h"

static const keel_field fields[] = {
    KEEL_FACTOR_FIELDS("parts of the range of values: f for [-f, f], or a pair"), { 0 }
};

static keel_status emit(keel_emit *e)
{
    const keel_factor_args *a = e->args;
    const keel_recolor_args op = { .kind = KEEL_RECOLOR_BRIGHTNESS,
                                   .range = { a->range },
                                   .values = a->values };
    return keel_emit_recolor(e, &op);
}

KEEL_FACTOR_LAYER(random_brightness, "RandomBrightness", keel_factor_ready_signed,
                  "Makes images brighter or darker by chance while training.");
