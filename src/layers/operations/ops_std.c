/* The root of the mean square of what is off the mean. */
#include "layers/operations/_moments.h"

static const keel_field fields[] = { KEEL_REDUCTION_FIELDS, { 0 } };

static keel_status emit(keel_emit *e)
{
    const keel_reduction *a = e->args;
    keel_value variance;
    KEEL_TRY(emit_moments(e, &a->axis, a->keepdims, NULL, &variance));
    return keel_emit_on(e, &keel_op_sqrt, NULL, &variance, 1, e->out);
}

KEEL_REDUCTION_LAYER(ops_std, "Std", "numpy",
                     "The root of the mean square of what is off the mean.")
