/* See _layer_norm.h. */
#include "layers/normalization/_layer_norm.h"

/* Reads which dims of a row are normalised. Keras sorts the numbers as they are, so all must count
 * from the same end. */
static keel_status read_axes(const keel_emit *e, const keel_ints *axis, bool over[KEEL_RANK_MAX])
{
    for (int d = 0; d < KEEL_RANK_MAX; d++) over[d] = false;
    for (int i = 0; i < axis->count; i++) {
        int64_t d;
        KEEL_TRY(keel_row_axis(e, axis->at[i], &d));
        if ((axis->at[i] < 0) != (axis->at[0] < 0))
            return keel_fail(KEEL_EUNSUP, "axis: some from the front, some from the end");
        if (over[d]) return keel_fail(KEEL_EARG, "axis %lld twice", (long long)axis->at[i]);
        over[d] = true;
    }
    return axis->count > 0 ? KEEL_OK : keel_fail(KEEL_EARG, "axis: there must be one");
}

/* Puts the normalised dims last, in their order. */
static void order(const bool over[KEEL_RANK_MAX], int rank, int64_t *to, int64_t *back)
{
    int n = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int d = 0; d < rank; d++)
            if (over[d] == (pass == 1)) to[n++] = d;
    for (int d = 0; d < rank; d++) back[to[d]] = d;
}

/* x with the normalised dims last. *back: how it gets its dims again; *shape: those dims. */
static keel_status turn(keel_emit *e, const keel_ints *axis, keel_value *x,
                        int64_t back[KEEL_RANK_MAX], keel_shape *shape)
{
    const keel_shape in = keel_graph_spec(e->graph, *x)->shape;
    int64_t to[KEEL_RANK_MAX];
    bool over[KEEL_RANK_MAX];
    KEEL_TRY(read_axes(e, axis, over));
    *shape = (keel_shape){ 0 };
    for (int d = 0; d < in.rank; d++)
        if (over[d]) shape->dim[shape->rank++] = in.dim[d];
    order(over, in.rank, to, back);
    return keel_emit_permuted(e, to, *x, x);
}

keel_status keel_emit_layer_norm(keel_emit *e, keel_value x, const keel_ints *axis,
                                 const keel_layer_norm_args *op, const keel_weight_decl *gamma,
                                 const keel_weight_decl *beta, keel_value *out)
{
    int64_t back[KEEL_RANK_MAX];
    keel_layer_norm_args args = *op;
    keel_shape shape;
    keel_weights w = { 0 };
    KEEL_TRY(turn(e, axis, &x, back, &shape));
    for (int k = 0; k < 2; k++) {
        if (!(k == 0 ? op->scale : op->center)) continue;
        keel_weight_decl decl = k == 0 ? *gamma : *beta;
        decl.shape = shape;
        KEEL_TRY(keel_emit_weight(e, &decl, &w));
    }
    args.dims = shape.rank;
    KEEL_TRY(keel_emit_weighted(e, &keel_op_layer_norm, &args, x, &w, &x));
    return keel_emit_permuted(e, back, x, out);
}

keel_status keel_emit_by_deviation(keel_emit *e, keel_value x, const keel_ints *axis,
                                   double epsilon, const keel_weight_decl *gamma, keel_value *out)
{
    const keel_rescaling_args more = { .scale = 1, .offset = epsilon };
    keel_reduce_args mean = { .to = KEEL_REDUCE_MEAN, .keepdims = true };
    int64_t back[KEEL_RANK_MAX];
    keel_weight_decl decl = *gamma;
    keel_weights w = { 0 };
    keel_value y;
    KEEL_TRY(turn(e, axis, &x, back, &decl.shape));
    KEEL_TRY(keel_emit_weight(e, &decl, &w));
    const int rank = keel_graph_spec(e->graph, x)->shape.rank;
    for (int d = rank - decl.shape.rank; d < rank; d++) mean.over[d] = true;
    KEEL_TRY(keel_emit_on(e, &keel_op_reduce, &mean, &x, 1, &y));
    KEEL_TRY(keel_emit_on(e, &keel_op_subtract, NULL, (keel_value[]){ x, y }, 2, &y));
    KEEL_TRY(keel_emit_on(e, &keel_op_square, NULL, &y, 1, &y));
    KEEL_TRY(keel_emit_on(e, &keel_op_reduce, &mean, &y, 1, &y));
    KEEL_TRY(keel_emit_on(e, &keel_op_rescaling, &more, &y, 1, &y));
    KEEL_TRY(keel_emit_on(e, &keel_op_rsqrt, NULL, &y, 1, &y));
    KEEL_TRY(keel_emit_on(e, &keel_op_multiply, NULL, (keel_value[]){ x, y }, 2, &y));
    KEEL_TRY(keel_emit_weighted(e, &keel_op_scale, NULL, y, &w, &y));
    return keel_emit_permuted(e, back, y, out);
}
