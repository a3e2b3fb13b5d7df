/* True if one value along the axes is true. */
#include "layers/operations/_values.h"

static const keel_field fields[] = { KEEL_REDUCTION_FIELDS, { 0 } };

static keel_status emit(keel_emit *e)
{
    return keel_emit_truth_over(e, KEEL_REDUCE_MAX);
}

KEEL_REDUCTION_LAYER(ops_any, "Any", "numpy", "True where one along the axes is.",
                     .whole = KEEL_WHOLE_ALWAYS)
