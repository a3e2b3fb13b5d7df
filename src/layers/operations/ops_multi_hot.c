/* 1 at each place that the numbers along the first dim of a row say, 0 elsewhere. */
#include "layers/operations/_one_hot.h"
#include "layers/operations/_values.h"

static keel_status emit(keel_emit *e)
{
    keel_value x;
    if (keel_emit_in(e, 0)->shape.rank < 1)
        return keel_fail(KEEL_EUNSUP, "rows of one number would be taken together");
    KEEL_TRY(emit_one_hot(e, &x));
    return keel_emit_reduced(e, KEEL_REDUCE_MAX, x, 0, false, e->out);
}

KEEL_ARGS_OPERATION(ops_multi_hot, "MultiHot", "nn", 1,
                    "1 at each place that the numbers of a row say.")
