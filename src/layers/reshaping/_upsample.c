/* See _upsample.h. */
#include "layers/reshaping/_upsample.h"
#include "ops/args.h"

keel_status keel_emit_upsample(keel_emit *e, const keel_ints *factors, bool between)
{
    keel_shape places;
    keel_value x;
    KEEL_TRY(keel_emit_as_image(e, factors->count, &x, &places));
    e->out[0] = e->in[0];
    for (int d = factors->count - 1; d >= 0; d--) {
        const keel_upsample_args op = { .axis = d, .factor = factors->at[d], .between = between };
        x = e->out[0];
        if (op.factor > 1) KEEL_TRY(keel_emit_on(e, &keel_op_upsample, &op, &x, 1, e->out));
    }
    return KEEL_OK;
}
