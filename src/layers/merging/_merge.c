/* See _merge.h. */
#include "layers/merging/_merge.h"
#include "ops/args.h"

keel_status keel_emit_any_mask(keel_emit *e)
{
    const keel_binary_args op = { 0 };
    keel_value any = e->mask[0];
    for (int i = 0; i < e->n_in; i++)
        if (e->mask[i] < 0) any = KEEL_MASK_NONE;
    for (int i = 1; i < e->n_in && any >= 0; i++) {
        const keel_value both[2] = { any, e->mask[i] };
        if (both[0] == both[1]) continue;
        KEEL_TRY(keel_emit_on(e, &keel_op_maximum, &op, both, 2, &any));
    }
    e->out_mask[0] = any;
    return KEEL_OK;
}
