/* The mean of its inputs, element by element. */
#include "layers/merging/_merge.h"
#include "ops/args.h"

static keel_status emit(keel_emit *e)
{
    const keel_rescaling_args share = { .scale = 1.0 / e->n_in };
    keel_value sum;
    KEEL_TRY(keel_emit_any_mask(e));
    KEEL_TRY(keel_emit_sum(e, &sum));
    return keel_emit_on(e, &keel_op_rescaling, &share, &sum, 1, e->out);
}

const keel_layer keel_layer_average = {
    .type = { KEEL_LAYER_HEAD("Average", "The mean of its inputs, element by element.") },
    .min_inputs = 1,
    .max_inputs = -1,
    .supports_masking = true,
    .whole = KEEL_WHOLE_TAKEN,
    .emit = emit,
};
