/* See _global_max.h. If several elements are the largest, they share the gradient, as in
 * TensorFlow. */
#include "layers/pooling/_global_max.h"
#include "ops/args.h"

const keel_field keel_global_max_fields[] = {
    KEEL_DATA_FORMAT(keel_global_max),
    KEEL_BOOL(keel_global_max, keepdims, "false", "keep the places as dims of 1"),
    { 0 },
};

keel_status keel_emit_global_max(keel_emit *e, int dims)
{
    const keel_global_max *a = e->args;
    keel_reduce_args op = { .to = KEEL_REDUCE_MAX, .keepdims = a->keepdims };
    const keel_shape *in = &keel_emit_in(e, 0)->shape;
    char shape[96];
    keel_shape_text(shape, in);
    if (in->rank != dims + 1)
        return keel_fail(KEEL_ESHAPE, "expected rows of %d dims, got %s", dims + 1, shape);
    for (int d = 0; d < dims; d++) op.over[d] = true;
    return keel_emit_one(e, &keel_op_reduce, &op);
}
