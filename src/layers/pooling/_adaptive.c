/* See _adaptive.h. Pools one dim after another, because a window is a box. */
#include "layers/pooling/_adaptive.h"
#include "ops/adaptive_pool.h"

KEEL_USES_OP(adaptive_pool);

keel_status keel_emit_adaptive(keel_emit *e, int dims, bool largest)
{
    const keel_adaptive *a = e->args;
    const keel_shape *in = &keel_emit_in(e, 0)->shape;
    keel_value x = e->in[0];
    char shape[96];
    keel_shape_text(shape, in);
    if (in->rank != dims + 1)
        return keel_fail(KEEL_ESHAPE, "expected rows of %d dims, got %s", dims + 1, shape);
    for (int d = 0; d < dims; d++) {
        const keel_adaptive_pool_args op = { d, a->output_size.at[d], largest };
        KEEL_TRY(keel_emit_on(e, &keel_op_adaptive_pool, &op, &x, 1, &x));
    }
    e->out[0] = x;
    return KEEL_OK;
}
