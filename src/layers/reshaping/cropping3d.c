/* [D, H, W, C] without some places at its edges. */
#include "layers/reshaping/_cropping.h"

static const keel_field fields[] = {
    KEEL_INTS(keel_cropping, cropping, 6, "[[1, 1], [1, 1], [1, 1]]", 0, 1e9,
              "n, [depth, height, width], or a pair for each"),
    KEEL_DATA_FORMAT(keel_cropping),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    return keel_emit_cropping(e, 3);
}

const keel_layer keel_layer_cropping3d = {
    .type = { KEEL_LAYER_HEAD("Cropping3D", "Takes places off the edges of volumes."),
              .args_size = sizeof(keel_cropping), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .whole = KEEL_WHOLE_KEPT,
    .emit = emit,
};
