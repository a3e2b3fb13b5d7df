/* In training the distances of the pixels of each image [H, W, C] from the mean of their channel
 * are multiplied by a random number. */
#include "layers/preprocessing/_random.h"

static const keel_field fields[] = { KEEL_FACTOR_FIELDS("(a, b) for [1 - a, 1 + b]; f is (0, f)"),
                                     { 0 } };

static keel_status emit(keel_emit *e)
{
    const keel_factor_args *a = e->args;
    const keel_recolor_args op = { .kind = KEEL_RECOLOR_CONTRAST,
                                   .range = { { 1 - a->range.low, 1 + a->range.high } },
                                   .values = a->values };
    return keel_emit_recolor(e, &op);
}

KEEL_FACTOR_LAYER(random_contrast, "RandomContrast", keel_factor_ready,
                  "Changes the contrast of images by chance while training.");
