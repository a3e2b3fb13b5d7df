/* Dims of 1 left out. */
#include "layers/operations/_operation.h"

typedef struct args_t {
    keel_ints axis;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, axis, -1, "null", -7, 7, "which; null: all of 1 but the batch"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_shape *in = &keel_emit_in(e, 0)->shape;
    keel_reshape_args op = { 0 };
    bool out[KEEL_RANK_MAX] = { false };
    for (int d = 0; d < in->rank; d++) out[d] = a->axis.count < 0 && in->dim[d] == 1;
    for (int i = 0; i < a->axis.count; i++) {
        int64_t d;
        KEEL_TRY(keel_row_axis(e, a->axis.at[i], &d));
        if (in->dim[d] != 1)
            return keel_fail(KEEL_ESHAPE, "axis %lld has %lld places, not 1",
                             (long long)a->axis.at[i], (long long)in->dim[d]);
        out[d] = true;
    }
    for (int d = 0; d < in->rank; d++)
        if (!out[d]) op.shape.dim[op.shape.rank++] = in->dim[d];
    return keel_emit_unary(e, &keel_op_reshape, &op);
}

KEEL_ARGS_OPERATION(ops_squeeze, "Squeeze", "numpy", 1, "Dims of 1 left out.",
                    .whole = KEEL_WHOLE_KEPT)
