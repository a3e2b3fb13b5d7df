/* The largest over axes, without NaN. */
#include "layers/operations/_nan.h"
#include <math.h>

static const keel_field fields[] = { KEEL_REDUCTION_FIELDS, { 0 } };

static keel_status emit(keel_emit *e)
{
    extern const keel_layer keel_layer_ops_amax;
    return emit_unless_nan(e, &keel_layer_ops_amax, -INFINITY, NAN);
}

KEEL_REDUCTION_LAYER(ops_nanmax, "Nanmax", "numpy", "The largest over axes, without NaN.")
