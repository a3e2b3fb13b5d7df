/* The root of the mean square of what is off the mean, without NaN. */
#include "layers/operations/_nan.h"

static const keel_field fields[] = { KEEL_REDUCTION_FIELDS, { 0 } };

static keel_status emit(keel_emit *e)
{
    keel_value variance;
    KEEL_TRY(emit_nan_variance(e, &variance));
    return keel_emit_each(e, &keel_op_sqrt, variance, e->out);
}

KEEL_REDUCTION_LAYER(ops_nanstd, "Nanstd", "numpy",
                     "The root of the mean square of what is off the mean, without NaN.")
