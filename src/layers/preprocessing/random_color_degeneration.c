/* In training each image [H, W, 3] loses a random part of its colours. */
#include "layers/preprocessing/_random.h"

static const keel_field fields[] = {
    KEEL_FACTOR_FIELDS("0 is as before, 1 is gray: f for [-f, f], or a pair"), { 0 }
};

static keel_status emit(keel_emit *e)
{
    const keel_factor_args *a = e->args;
    const keel_recolor_args op = { .kind = KEEL_RECOLOR_FADE,
                                   .range = { a->range },
                                   .values = a->values };
    return keel_emit_recolor(e, &op);
}

KEEL_FACTOR_LAYER(random_color_degeneration, "RandomColorDegeneration", keel_factor_ready_signed,
                  "Takes colour from images by chance while training.");
