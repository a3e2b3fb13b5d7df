/* In training some images [H, W, C] become their negatives. */
#include "layers/preprocessing/_random.h"

static const keel_field fields[] = {
    KEEL_FACTOR_FIELDS("how probable it is: f for [0, f], or a pair"), { 0 }
};

static keel_status emit(keel_emit *e)
{
    const keel_factor_args *a = e->args;
    const keel_recolor_args op = { .kind = KEEL_RECOLOR_INVERT,
                                   .range = { a->range, { 0, 1 } },
                                   .values = a->values };
    return keel_emit_recolor(e, &op);
}

KEEL_FACTOR_LAYER(random_invert, "RandomInvert", keel_factor_ready,
                  "Inverts images by chance while training.");
