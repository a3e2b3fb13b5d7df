/* The same numbers of a row under another shape. The first dim is the batch and stays. */
#include "layers/operations/_operation.h"

typedef struct args_t {
    keel_ints newshape;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, newshape, 0, NULL, -1, 1e15, "with the batch (-1 or any number) first"),
    { 0 },
};

/* Keras counts the batch, too: with -1 for it, other numbers than those of a row change how many
 * rows there are, as where windows of an image become rows. */
static keel_status check_rows(const keel_emit *e, const keel_shape *to)
{
    const keel_shape *row = &keel_emit_in(e, 0)->shape;
    char from[96], shape[96];
    int64_t count = 1;
    for (int i = 0; i < to->rank; i++)
        if (to->dim[i] < 1 || __builtin_mul_overflow(count, to->dim[i], &count))
            return KEEL_OK; /* the op names it */
    if (keel_shape_count(row) == count) return KEEL_OK;
    keel_shape_text(from, row);
    keel_shape_text(shape, to);
    return keel_fail(e->graph->outline ? KEEL_ESHAPE : KEEL_EUNSUP,
                     "newshape: a row of %s has %lld elements and %s has %lld: the batch comes "
                     "first, as -1, and must stay as it is, since rows do not mix",
                     from, (long long)keel_shape_count(row), shape, (long long)count);
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_ints *to = &a->newshape;
    keel_reshape_args op = { 0 };
    int open = 0;
    for (int i = 1; i < to->count; i++) open += to->at[i] == -1;
    if (to->count < 1 || (to->at[0] != -1 && open == 0))
        return keel_fail(KEEL_EUNSUP, "newshape: the batch comes first, as -1: rows do not mix");
    if (to->at[0] != -1)
        return keel_fail(KEEL_EUNSUP, "newshape: a fixed batch of %lld is not supported: use -1",
                         (long long)to->at[0]);
    if (to->count - 1 > KEEL_RANK_MAX)
        return keel_fail(KEEL_EUNSUP, "newshape: more than %d dims of a row", KEEL_RANK_MAX);
    for (int i = 1; i < to->count; i++) op.shape.dim[op.shape.rank++] = to->at[i];
    if (open == 0) KEEL_TRY(check_rows(e, &op.shape));
    return keel_emit_unary(e, &keel_op_reshape, &op);
}

KEEL_ARGS_OPERATION(ops_reshape, "Reshape", "numpy", 1,
                    "The same numbers of a row under another shape.", .whole = KEEL_WHOLE_KEPT)
