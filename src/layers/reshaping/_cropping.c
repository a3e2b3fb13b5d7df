/* See _cropping.h. */
#include "layers/reshaping/_cropping.h"
#include "ops/args.h"

keel_status keel_emit_cropping(keel_emit *e, int dims)
{
    const keel_cropping *a = e->args;
    const keel_shape *in = &keel_emit_in(e, 0)->shape;
    keel_slice_args op = { 0 };
    char shape[96];
    keel_shape_text(shape, in);
    if (in->rank != dims + 1)
        return keel_fail(KEEL_ESHAPE, "expected rows of %d dims, got %s", dims + 1, shape);
    for (int d = 0; d < in->rank; d++) {
        const int64_t before = d < dims ? a->cropping.at[2 * d] : 0;
        const int64_t behind = d < dims ? a->cropping.at[2 * d + 1] : 0;
        op.begin[d] = before;
        op.step[d] = 1;
        op.count[d] = in->dim[d] - before - behind;
        if (op.count[d] < 1)
            return keel_fail(KEEL_ESHAPE, "cropping %lld and %lld leaves nothing of dim %d of %s",
                             (long long)before, (long long)behind, d + 1, shape);
    }
    return keel_emit_one(e, &keel_op_slice, &op);
}
