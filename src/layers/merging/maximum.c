/* The largest of its inputs, element by element. */
#include "layers/merging/_merge.h"

static keel_status emit(keel_emit *e)
{
    KEEL_TRY(keel_emit_unmasked(e));
    return keel_emit_merged(e, &keel_op_maximum, e->out);
}

const keel_layer keel_layer_maximum = {
    .type = { KEEL_LAYER_HEAD("Maximum", "The largest of its inputs, element by element.") },
    .min_inputs = 1,
    .max_inputs = -1,
    .supports_masking = true,
    .emit = emit,
};
