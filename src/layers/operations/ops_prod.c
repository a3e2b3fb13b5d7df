/* The product over axes. */
#include "layers/operations/_operation.h"

typedef struct args_t {
    keel_ints axis;
    bool keepdims;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, axis, -1, "null", -7, 7, "over which dims, the batch is 0"),
    KEEL_BOOL(args_t, keepdims, "false", "keep them as dims of 1"),
    KEEL_REFUSE("dtype", "null", "Keras's backends disagree: TensorFlow takes no heed of it"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    keel_reduce_args over = { 0 };
    keel_shape out = { 0 };
    keel_value y = e->in[0];
    KEEL_TRY(keel_reduce_axes(e, &a->axis, &over));
    const keel_shape in = keel_emit_in(e, 0)->shape;
    for (int d = 0; d < in.rank; d++)
        if (!over.over[d] || a->keepdims) out.dim[out.rank++] = over.over[d] ? 1 : in.dim[d];
    for (int d = in.rank - 1; d >= 0; d--) { /* the last one first: the others keep their place */
        const keel_axis_args op = { .axis = d };
        if (over.over[d]) KEEL_TRY(keel_emit_on(e, &keel_op_product, &op, &y, 1, &y));
    }
    return keel_emit_view(e, &out, y, e->out);
}

KEEL_ARGS_OPERATION(ops_prod, "Prod", "numpy", 1, "The product over axes.")
