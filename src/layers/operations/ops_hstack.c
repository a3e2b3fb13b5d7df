/* Values one after another along the first dim of a row. */
#include "layers/operations/_operation.h"

static keel_status emit(keel_emit *e)
{
    const keel_axis_args first = { .axis = 0 };
    if (keel_emit_in(e, 0)->shape.rank < 1)
        return keel_fail(KEEL_EUNSUP, "of rows of one number it would follow the batch");
    return keel_emit_one(e, &keel_op_concatenate, &first);
}

KEEL_PLAIN_OPERATION(ops_hstack, "Hstack", "numpy", -1,
                     "Values one after another along the first dim of a row.")
