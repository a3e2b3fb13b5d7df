/* [H, W, C] without some places at its edges. */
#include "layers/reshaping/_cropping.h"

static const keel_field fields[] = {
    KEEL_INTS(keel_cropping, cropping, 4, "[[0, 0], [0, 0]]", 0, 1e9,
              "n, [height, width], or a pair for each"),
    KEEL_DATA_FORMAT(keel_cropping),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    return keel_emit_cropping(e, 2);
}

const keel_layer keel_layer_cropping2d = {
    .type = { KEEL_LAYER_HEAD("Cropping2D", "Takes places off the edges of images."),
              .args_size = sizeof(keel_cropping), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .whole = KEEL_WHOLE_KEPT,
    .emit = emit,
};
