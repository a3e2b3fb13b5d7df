/* The mean over axes, without NaN. */
#include "layers/operations/_nan.h"

static const keel_field fields[] = { KEEL_REDUCTION_FIELDS, { 0 } };

static keel_status emit(keel_emit *e)
{
    extern const keel_layer keel_layer_ops_sum;
    const keel_reduction *a = e->args;
    keel_reduce_args over = { .keepdims = a->keepdims };
    keel_value count, sum;
    KEEL_TRY(keel_reduce_axes(e, &a->axis, &over));
    KEEL_TRY(emit_numbers_count(e, over, &count));
    KEEL_TRY(emit_without_nan(e, &keel_layer_ops_sum, 0));
    sum = e->out[0];
    return keel_emit_pair(e, &keel_op_divide, sum, count, e->out);
}

KEEL_REDUCTION_LAYER(ops_nanmean, "Nanmean", "numpy", "The mean over axes, without NaN.")
