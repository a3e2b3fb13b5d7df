/* True if all values along the axes are true. */
#include "layers/operations/_values.h"

static const keel_field fields[] = { KEEL_REDUCTION_FIELDS, { 0 } };

static keel_status emit(keel_emit *e)
{
    return keel_emit_truth_over(e, KEEL_REDUCE_MIN);
}

KEEL_REDUCTION_LAYER(ops_all, "All", "numpy", "True where all along the axes are.",
                     .whole = KEEL_WHOLE_ALWAYS)
