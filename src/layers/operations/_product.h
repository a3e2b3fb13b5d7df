/* The product over axes, with NaN and without. */
#ifndef KEEL_LAYERS_OPERATIONS_PRODUCT_H
#define KEEL_LAYERS_OPERATIONS_PRODUCT_H
#include "layers/operations/_operation.h"

static inline keel_status emit_product(keel_emit *e, const keel_ints *axis, bool keepdims,
                                       keel_value x)
{
    keel_reduce_args over = { 0 };
    keel_shape out = { 0 };
    KEEL_TRY(keel_reduce_axes(e, axis, &over));
    const keel_shape in = keel_emit_in(e, 0)->shape;
    for (int d = 0; d < in.rank; d++)
        if (!over.over[d] || keepdims) out.dim[out.rank++] = over.over[d] ? 1 : in.dim[d];
    for (int d = in.rank - 1; d >= 0; d--) { /* the last one first: the others keep their place */
        const keel_axis_args op = { .axis = d };
        if (over.over[d]) KEEL_TRY(keel_emit_on(e, &keel_op_product, &op, &x, 1, &x));
    }
    return keel_emit_view(e, &out, x, e->out);
}

#endif
