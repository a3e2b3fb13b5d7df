/* Numbers less their mean, by their deviation. */
#include "layers/operations/_centred.h"

static const keel_field fields[] = {
    KEEL_CENTRED_FIELDS,
    KEEL_REFUSE("rms_scaling", "false", "by the deviation only, an old form"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    keel_reduce_args over = { 0 };
    keel_value x, gamma, beta;
    KEEL_TRY(keel_emit_centred(e, false, &x));
    KEEL_TRY(keel_reduce_axes(e, &((const keel_centred *)e->args)->axis, &over));
    KEEL_TRY(keel_factor_at(e, 1, "gamma", over.over, &gamma));
    KEEL_TRY(keel_factor_at(e, 2, "beta", over.over, &beta));
    if (gamma >= 0) KEEL_TRY(keel_emit_pair(e, &keel_op_multiply, x, gamma, &x));
    if (beta >= 0) KEEL_TRY(keel_emit_pair(e, &keel_op_plus, x, beta, &x));
    e->out[0] = x;
    return KEEL_OK;
}

const keel_layer keel_layer_ops_layer_normalization = {
    .type = { KEEL_OPERATION_HEAD("LayerNorm", "nn",
                                  "Numbers less their mean, by their deviation."),
              .args_size = sizeof(keel_centred), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 3,
    .operation = true,
    .emit = emit,
};
