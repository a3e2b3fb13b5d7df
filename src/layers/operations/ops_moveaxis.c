/* Dims moved to other places; the others keep their order. */
#include "layers/operations/_operation.h"

typedef struct args_t {
    keel_ints source;
    keel_ints destination;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, source, -1, NULL, -7, 7, "which, the batch is 0"),
    KEEL_INTS(args_t, destination, -1, NULL, -7, 7, "where to"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const int rank = keel_emit_in(e, 0)->shape.rank, n = a->source.count;
    keel_permute_args op = { 0 };
    bool moved[KEEL_RANK_MAX] = { false }, filled[KEEL_RANK_MAX] = { false };
    if (n != a->destination.count)
        return keel_fail(KEEL_EARG, "source has %d axes, destination %d", n, a->destination.count);
    for (int i = 0; i < n; i++) {
        int64_t from, to;
        KEEL_TRY(keel_row_axis(e, a->source.at[i], &from));
        KEEL_TRY(keel_row_axis(e, a->destination.at[i], &to));
        if (moved[from] || filled[to]) return keel_fail(KEEL_EARG, "an axis twice");
        moved[from] = filled[to] = true;
        op.from[to] = from;
    }
    for (int to = 0, from = 0; to < rank; to++) {
        if (filled[to]) continue;
        while (moved[from]) from++;
        op.from[to] = from++;
    }
    return keel_emit_unary(e, &keel_op_permute, &op);
}

KEEL_ARGS_OPERATION(ops_moveaxis, "Moveaxis", "numpy", 1,
                    "Dims moved to other places; the others keep their order.",
                    .whole = KEEL_WHOLE_KEPT)
