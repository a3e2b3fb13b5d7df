/* The powers of the number of each row, from the highest to the 0th. */
#include "layers/operations/_values.h"

typedef struct args_t {
    int64_t N;
    bool increasing;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, N, "null", 1, 1e9, "how many powers; null would be the rows of the batch"),
    KEEL_BOOL(args_t, increasing, "false", "from the 0th to the highest"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_axis_args along = { 0 };
    const keel_shape one = KEEL_SHAPE(1);
    keel_value x[2];
    if (keel_emit_in(e, 0)->shape.rank != 0)
        return keel_fail(KEEL_EUNSUP, "it is of rows of one number");
    if (a->N == KEEL_INT_NULL)
        return keel_fail(KEEL_EUNSUP, "N null is the number of rows in the batch");
    keel_slice_args back = { .begin = { a->N - 1 }, .step = { -1 }, .count = { a->N } };
    /* the products of 1, x, x, x, ... up to each place */
    KEEL_TRY(keel_emit_view(e, &one, e->in[0], &x[1]));
    KEEL_TRY(keel_emit_filled(e, x[1], 1, &x[0]));
    if (a->N > 1) {
        KEEL_TRY(keel_emit_repeated(e, x[1], 0, a->N - 1, &x[1]));
        KEEL_TRY(keel_emit_on(e, &keel_op_concatenate, &along, x, 2, &x[0]));
        KEEL_TRY(keel_emit_on(e, &keel_op_cumprod, &along, &x[0], 1, &x[0]));
    }
    e->out[0] = x[0];
    return a->increasing || a->N == 1 ? KEEL_OK
                                      : keel_emit_on(e, &keel_op_slice, &back, &x[0], 1, e->out);
}

KEEL_ARGS_OPERATION(ops_vander, "Vander", "numpy", 1, "The powers of the number of each row.",
                    .whole = KEEL_WHOLE_KEPT)
