/* The mean over dims of a row, and the mean square of what is off it. */
#ifndef KEEL_LAYERS_OPERATIONS_MOMENTS_H
#define KEEL_LAYERS_OPERATIONS_MOMENTS_H
#include "layers/operations/_values.h"

static inline keel_status emit_moments(keel_emit *e, const keel_ints *axes, bool keepdims,
                                       keel_value *mean, keel_value *var)
{
    keel_reduce_args op = { .to = KEEL_REDUCE_MEAN, .keepdims = true };
    keel_value middle, x;
    KEEL_TRY(keel_reduce_axes(e, axes, &op));
    KEEL_TRY(keel_emit_on(e, &keel_op_reduce, &op, e->in, 1, &middle));
    KEEL_TRY(keel_emit_pair(e, &keel_op_subtract, e->in[0], middle, &x));
    KEEL_TRY(keel_emit_on(e, &keel_op_square, NULL, &x, 1, &x));
    op.keepdims = keepdims;
    KEEL_TRY(keel_emit_on(e, &keel_op_reduce, &op, &x, 1, var));
    if (!mean) return KEEL_OK;
    if (!keepdims)
        KEEL_TRY(keel_emit_view(e, &keel_graph_spec(e->graph, *var)->shape, middle, &middle));
    *mean = middle;
    return KEEL_OK;
}

/* Input 0 by the root of its variance + epsilon. */
static inline keel_status emit_by_deviation(keel_emit *e, const keel_ints *axes, double epsilon,
                                            keel_value *out)
{
    keel_value x;
    KEEL_TRY(emit_moments(e, axes, true, NULL, &x));
    KEEL_TRY(keel_emit_scaled(e, x, 1, epsilon, &x));
    KEEL_TRY(keel_emit_each(e, &keel_op_rsqrt, x, &x));
    return keel_emit_pair(e, &keel_op_multiply, e->in[0], x, out);
}

#endif
