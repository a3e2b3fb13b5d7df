/* The product of its inputs, element by element. */
#include "layers/merging/_merge.h"

static keel_status emit(keel_emit *e)
{
    return keel_emit_merged_product(e);
}

const keel_layer keel_layer_multiply = {
    .type = { KEEL_LAYER_HEAD("Multiply", "The product of its inputs, element by element.") },
    .min_inputs = 1,
    .max_inputs = -1,
    .supports_masking = true,
    .masks_at_run = true,
    .whole = KEEL_WHOLE_KEPT,
    .emit = emit,
};
