/* Numbers less their mean, by their deviation. */
#include "layers/operations/_centred.h"
#include "layers/operations/_moments.h"
#include <math.h>

typedef struct args_t {
    keel_centred centred; /* first: its functions take these args */
    bool rms_scaling;
} args_t;

static const keel_field fields[] = {
    KEEL_CENTRED_FIELDS,
    KEEL_BOOL(args_t, rms_scaling, "false", "by the deviation only, without beta: an old form"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const double epsilon = isnan(a->centred.epsilon) ? 1e-7 : a->centred.epsilon;
    keel_reduce_args over = { 0 };
    keel_value x, gamma, beta;
    if (a->rms_scaling)
        KEEL_TRY(emit_by_deviation(e, &a->centred.axis, epsilon, &x));
    else
        KEEL_TRY(keel_emit_centred(e, false, &x));
    KEEL_TRY(keel_reduce_axes(e, &a->centred.axis, &over));
    KEEL_TRY(keel_factor_at(e, 1, "gamma", over.over, &gamma));
    KEEL_TRY(keel_factor_at(e, 2, "beta", over.over, &beta));
    if (gamma >= 0) KEEL_TRY(keel_emit_pair(e, &keel_op_multiply, x, gamma, &x));
    if (beta >= 0 && !a->rms_scaling) KEEL_TRY(keel_emit_pair(e, &keel_op_plus, x, beta, &x));
    e->out[0] = x;
    return KEEL_OK;
}

const keel_layer keel_layer_ops_layer_normalization = {
    .type = { KEEL_OPERATION_HEAD("LayerNorm", "nn",
                                  "Numbers less their mean, by their deviation."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 3,
    .operation = true,
    .places = true,
    .emit = emit,
};
