/* 1 at the place that each number says, 0 elsewhere. */
#include "layers/operations/_one_hot.h"

static keel_status emit(keel_emit *e)
{
    return emit_one_hot(e, e->out);
}

KEEL_ARGS_OPERATION(ops_one_hot, "OneHot", "nn", 1,
                    "1 at the place that each number says, 0 elsewhere.")
