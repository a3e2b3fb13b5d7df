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

keel_status keel_emit_unmasked(const keel_emit *e)
{
    if (keel_emit_masked(e) < 0) return KEEL_OK;
    return keel_fail(KEEL_EUNSUP, "inputs with a mask are not supported by this layer");
}

/* Input i with dims of 1 before its own, so that it has as many dims as the input with the most. */
static keel_status widened(keel_emit *e, int i, keel_value *out)
{
    const keel_shape *own = &keel_emit_in(e, i)->shape;
    int rank = own->rank;
    for (int k = 0; k < e->n_in; k++) {
        const int other = keel_emit_in(e, k)->shape.rank;
        rank = other > rank ? other : rank;
    }
    *out = e->in[i];
    if (own->rank == rank) return KEEL_OK;
    keel_shape shape = { .rank = rank };
    for (int d = 0; d < rank; d++) {
        const int from = d - (rank - own->rank);
        shape.dim[d] = from < 0 ? 1 : own->dim[from];
    }
    return keel_emit_view(e, &shape, e->in[i], out);
}

keel_status keel_emit_merged(keel_emit *e, const keel_op *op, keel_value *out)
{
    const keel_binary_args args = { 0 };
    keel_value both[2];
    KEEL_TRY(widened(e, 0, &both[0]));
    for (int i = 1; i < e->n_in; i++) {
        KEEL_TRY(widened(e, i, &both[1]));
        KEEL_TRY(keel_emit_on(e, op, &args, both, 2, &both[0]));
    }
    *out = both[0];
    return KEEL_OK;
}

/* The op of any number of inputs, if they have the same shape. */
keel_status keel_emit_sum(keel_emit *e, keel_value *out)
{
    for (int i = 1; i < e->n_in; i++)
        if (!keel_shape_equal(&keel_emit_in(e, 0)->shape, &keel_emit_in(e, i)->shape))
            return keel_emit_merged(e, &keel_op_plus, out);
    return keel_emit_on(e, &keel_op_add, NULL, e->in, e->n_in, out);
}
