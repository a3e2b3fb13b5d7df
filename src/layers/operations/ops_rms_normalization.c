/* Numbers by the root of their mean square. */
#include "layers/operations/_centred.h"

static const keel_field fields[] = { KEEL_CENTRED_FIELDS, { 0 } };

static keel_status emit(keel_emit *e)
{
    keel_value x, scale;
    KEEL_TRY(keel_emit_centred(e, true, &x));
    KEEL_TRY(keel_factor_at(e, 1, "scale", NULL, &scale));
    if (scale >= 0) KEEL_TRY(keel_emit_pair(e, &keel_op_multiply, x, scale, &x));
    e->out[0] = x;
    return KEEL_OK;
}

const keel_layer keel_layer_ops_rms_normalization = {
    .type = { KEEL_OPERATION_HEAD("RMSNorm", "nn", "Numbers by the root of their mean square."),
              .args_size = sizeof(keel_centred), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 2,
    .operation = true,
    .places = true,
    .emit = emit,
};
