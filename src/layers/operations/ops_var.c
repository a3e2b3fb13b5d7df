/* The mean square of what is off the mean. */
#include "layers/operations/_operation.h"

static const keel_field fields[] = { KEEL_REDUCTION_FIELDS, { 0 } };

static keel_status emit(keel_emit *e)
{
    return keel_emit_variance(e, e->out);
}

KEEL_REDUCTION_LAYER(ops_var, "Var", "numpy", "The mean square of what is off the mean.")
