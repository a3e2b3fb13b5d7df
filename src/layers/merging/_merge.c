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

/* Input i, whose places count where *mask is 1: [T, 1] beside [T, C]. -1: all count. */
static keel_status masked_input(keel_emit *e, int i, keel_value *x, keel_value *mask)
{
    *x = e->in[i];
    *mask = e->mask[i];
    if (*mask < 0) return KEEL_OK;
    keel_shape shape = keel_graph_spec(e->graph, *mask)->shape;
    if (shape.rank + 1 != keel_emit_in(e, i)->shape.rank)
        return keel_fail(KEEL_EUNSUP,
                         "input %d has a mask of %d dims beside values of %d; a mask of one dim "
                         "less is supported",
                         i, shape.rank + 1, keel_emit_in(e, i)->shape.rank + 1);
    shape.dim[shape.rank++] = 1;
    return keel_emit_view(e, &shape, *mask, mask);
}

/* a where the mask is 1, b elsewhere. */
static keel_status choose(keel_emit *e, keel_value mask, keel_value a, keel_value b,
                          keel_value *out)
{
    static const keel_where_args args = { { false, false }, { 0 } };
    return keel_emit_on(e, &keel_op_where, &args, (keel_value[]){ mask, a, b }, 3, out);
}

keel_status keel_emit_merged_product(keel_emit *e)
{
    static const keel_where_args or_one = { { false, true }, { 0, 1 } };
    static const keel_binary_args args = { 0 };
    keel_value y = KEEL_MASK_NONE, x, mask;
    KEEL_TRY(keel_emit_any_mask(e));
    if (keel_emit_masked(e) < 0) return keel_emit_merged(e, &keel_op_multiply, e->out);
    for (int i = 0; i < e->n_in; i++) {
        KEEL_TRY(masked_input(e, i, &x, &mask));
        if (mask >= 0)
            KEEL_TRY(keel_emit_on(e, &keel_op_where, &or_one, (keel_value[]){ mask, x }, 2, &x));
        if (i == 0)
            y = x;
        else
            KEEL_TRY(keel_emit_on(e, &keel_op_multiply, &args, (keel_value[]){ y, x }, 2, &y));
    }
    e->out[0] = y;
    if (e->out_mask[0] < 0) return KEEL_OK;
    return keel_emit_on(e, &keel_op_masked, NULL, (keel_value[]){ y, e->out_mask[0] }, 2, e->out);
}

keel_status keel_emit_merged_extreme(keel_emit *e, const keel_op *op)
{
    static const keel_binary_args args = { 0 };
    keel_value y, x, counts, mask;
    KEEL_TRY(keel_emit_any_mask(e));
    if (keel_emit_masked(e) < 0) return keel_emit_merged(e, op, e->out);
    KEEL_TRY(masked_input(e, 0, &y, &counts)); /* counts: where y does */
    for (int i = 1; i < e->n_in; i++) {
        KEEL_TRY(masked_input(e, i, &x, &mask));
        if (mask >= 0) KEEL_TRY(choose(e, mask, x, y, &x));
        if (counts >= 0) KEEL_TRY(choose(e, counts, y, x, &y));
        KEEL_TRY(keel_emit_on(e, op, &args, (keel_value[]){ y, x }, 2, &y));
        if (counts >= 0 && mask >= 0 && counts != mask)
            KEEL_TRY(keel_emit_on(e, &keel_op_maximum, &args, (keel_value[]){ counts, mask }, 2,
                                  &counts));
        else if (mask < 0)
            counts = KEEL_MASK_NONE;
    }
    e->out[0] = y;
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
