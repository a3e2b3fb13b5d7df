/* The first input less the second, element by element. */
#include "layers/merging/_merge.h"

static keel_status emit(keel_emit *e)
{
    KEEL_TRY(keel_emit_any_mask(e));
    return keel_emit_merged(e, &keel_op_subtract, e->out);
}

const keel_layer keel_layer_subtract = {
    .type = { KEEL_LAYER_HEAD("Subtract", "The first input less the second.") },
    .min_inputs = 2,
    .max_inputs = 2,
    .takes_list = true,
    .supports_masking = true,
    .whole = KEEL_WHOLE_KEPT,
    .emit = emit,
};
