/* The dims in another order; the batch stays first. */
#include "layers/operations/_operation.h"

typedef struct args_t {
    keel_ints axes;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, axes, 0, "null", -8, 7, "the order, 0 (the batch) first"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const int rank = keel_emit_in(e, 0)->shape.rank;
    keel_permute_args op = { 0 };
    if (a->axes.count < 1 || (a->axes.at[0] != 0 && a->axes.at[0] != -rank - 1))
        return keel_fail(KEEL_EUNSUP, "axes: the batch (0) must stay first");
    if (a->axes.count != rank + 1)
        return keel_fail(KEEL_ESHAPE, "axes: %d of them for %d dims with the batch", a->axes.count,
                         rank + 1);
    for (int d = 0; d < rank; d++) KEEL_TRY(keel_row_axis(e, a->axes.at[d + 1], &op.from[d]));
    return keel_emit_unary(e, &keel_op_permute, &op);
}

KEEL_ARGS_OPERATION(ops_transpose, "Transpose", "numpy", 1, "The dims of a row in another order.",
                    .whole = KEEL_WHOLE_KEPT)
