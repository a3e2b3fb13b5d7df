/* New dims of 1. */
#include "layers/operations/_operation.h"

typedef struct args_t {
    keel_ints axis;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, axis, -1, NULL, -7, 7, "where, the batch is 0"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_shape *in = &keel_emit_in(e, 0)->shape;
    const int rank = in->rank + a->axis.count;
    bool new[KEEL_RANK_MAX] = { false };
    keel_reshape_args op = { .shape.rank = rank };
    if (a->axis.count < 1) return keel_fail(KEEL_EARG, "axis: there must be one");
    for (int i = 0; i < a->axis.count; i++) {
        int64_t place = 0;
        KEEL_TRY(keel_new_axis_of(rank, a->axis.at[i], &place));
        if (new[place]) return keel_fail(KEEL_EARG, "axis %lld twice", (long long)a->axis.at[i]);
        new[place] = true;
    }
    for (int d = 0, from = 0; d < rank; d++) op.shape.dim[d] = new[d] ? 1 : in->dim[from++];
    return keel_emit_unary(e, &keel_op_reshape, &op);
}

KEEL_ARGS_OPERATION(ops_expand_dims, "ExpandDims", "numpy", 1, "New dims of 1.",
                    .whole = KEEL_WHOLE_KEPT)
