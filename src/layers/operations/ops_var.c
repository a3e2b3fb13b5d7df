/* The mean square of what is off the mean. */
#include "layers/operations/_moments.h"

static const keel_field fields[] = { KEEL_REDUCTION_FIELDS, { 0 } };

static keel_status emit(keel_emit *e)
{
    const keel_reduction *a = e->args;
    return emit_moments(e, &a->axis, a->keepdims, NULL, e->out);
}

KEEL_REDUCTION_LAYER(ops_var, "Var", "numpy", "The mean square of what is off the mean.")
