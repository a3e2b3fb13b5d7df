/* The sum of its inputs, element by element. */
#include "layers/merging/_merge.h"

static keel_status emit(keel_emit *e)
{
    KEEL_TRY(keel_emit_any_mask(e));
    return keel_emit_sum(e, e->out);
}

const keel_layer keel_layer_add = {
    .type = { KEEL_LAYER_HEAD("Add", "The sum of its inputs, element by element.") },
    .min_inputs = 1,
    .max_inputs = -1,
    .supports_masking = true,
    .whole = KEEL_WHOLE_KEPT,
    .emit = emit,
};
