/* The number below which a part of them is. A model of Keras 3.15 takes no heed of the method, so
 * another than linear is refused here; percentile has them all. */
#include "layers/operations/_quantile.h"

static const keel_field fields[] = {
    KEEL_INTS(keel_quantile, axis, -1, "null", -7, 7, "over which dims, the batch is 0"),
    KEEL_REFUSE("method", "\"linear\"",
                "Keras computes linear, whatever is given; percentile has them"),
    KEEL_BOOL(keel_quantile, keepdims, "false", "keep them as dims of 1"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    double q;
    KEEL_TRY(keel_quantile_q(e, &q));
    return keel_emit_quantile(e, e->args, q, false);
}

const keel_layer keel_layer_ops_quantile = {
    .type = { KEEL_OPERATION_HEAD("Quantile", "numpy", "The number below which a part of them is."),
              .args_size = sizeof(keel_quantile), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .operation = true,
    .emit = emit,
};
