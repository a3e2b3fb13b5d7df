/* True where it is no number: that differs from itself. */
#include "layers/operations/_operation.h"

static keel_status emit(keel_emit *e)
{
    const keel_compare_args differs = { .is = KEEL_NOT_EQUAL };
    const keel_value twice[2] = { e->in[0], e->in[0] };
    return keel_emit_on(e, &keel_op_compare, &differs, twice, 2, e->out);
}

const keel_layer keel_layer_ops_isnan = {
    .type = { KEEL_OPERATION_HEAD("Isnan", "numpy", "Is it no number?") },
    .min_inputs = 1,
    .max_inputs = 1,
    .operation = true,
    .emit = emit,
};
