/* The sum over axes, without NaN. */
#include "layers/operations/_nan.h"
#include <math.h>

static const keel_field fields[] = { KEEL_REDUCTION_FIELDS, { 0 } };

static keel_status emit(keel_emit *e)
{
    extern const keel_layer keel_layer_ops_sum;
    return emit_without_nan(e, &keel_layer_ops_sum, 0);
}

KEEL_REDUCTION_LAYER(ops_nansum, "Nansum", "numpy", "The sum over axes, without NaN.")
