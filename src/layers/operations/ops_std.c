/* The root of the mean square of what is off the mean. */
#include "layers/operations/_operation.h"

static const keel_field fields[] = { KEEL_REDUCTION_FIELDS, { 0 } };

static keel_status emit(keel_emit *e)
{
    keel_value variance;
    KEEL_TRY(keel_emit_variance(e, &variance));
    return keel_emit_on(e, &keel_op_sqrt, NULL, &variance, 1, e->out);
}

KEEL_REDUCTION_LAYER(ops_std, "Std", "numpy",
                     "The root of the mean square of what is off the mean.")
