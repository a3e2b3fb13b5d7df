/* The mean square of what is off the mean, without NaN. */
#include "layers/operations/_nan.h"

static const keel_field fields[] = { KEEL_REDUCTION_FIELDS, { 0 } };

static keel_status emit(keel_emit *e)
{
    return emit_nan_variance(e, e->out);
}

KEEL_REDUCTION_LAYER(ops_nanvar, "Nanvar", "numpy",
                     "The mean square of what is off the mean, without NaN.")
