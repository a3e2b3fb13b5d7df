/* In training the hue of each image [H, W, 3] is turned by a random angle. */
#include "layers/preprocessing/_random.h"

static const keel_field fields[] = {
    KEEL_FACTOR_FIELDS("parts of half a turn, either way: f for [0, f], or a pair"), { 0 }
};

static keel_status emit(keel_emit *e)
{
    const keel_factor_args *a = e->args;
    const keel_recolor_args op = { .kind = KEEL_RECOLOR_HUE,
                                   .range = { a->range, { 0, 1 } },
                                   .values = a->values };
    return keel_emit_recolor(e, &op);
}

KEEL_FACTOR_LAYER(random_hue, "RandomHue", keel_factor_ready,
                  "Turns the hue of images by chance while training.");
