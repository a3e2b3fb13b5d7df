/* The smallest over axes, without NaN. */
#include "layers/operations/_nan.h"
#include <math.h>

static const keel_field fields[] = { KEEL_REDUCTION_FIELDS, { 0 } };

static keel_status emit(keel_emit *e)
{
    extern const keel_layer keel_layer_ops_amin;
    return emit_unless_nan(e, &keel_layer_ops_amin, INFINITY, NAN);
}

KEEL_REDUCTION_LAYER(ops_nanmin, "Nanmin", "numpy", "The smallest over axes, without NaN.")
