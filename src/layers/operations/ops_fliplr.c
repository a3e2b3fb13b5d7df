/* The first dim of a row from the last place to the first. */
#include "layers/operations/_operation.h"

static keel_status emit(keel_emit *e)
{
    if (keel_emit_in(e, 0)->shape.rank > 0) return keel_emit_reversed(e, e->in[0], 0, e->out);
    return keel_fail(KEEL_ESHAPE, "rows of one number have no dim to turn over");
}

KEEL_PLAIN_OPERATION(ops_fliplr, "Fliplr", "numpy", 1, "The first dim of a row turned over.",
                     .whole = KEEL_WHOLE_KEPT)
