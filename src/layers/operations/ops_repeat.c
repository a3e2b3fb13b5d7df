/* Each place of an axis several times. */
#include "layers/operations/_values.h"

typedef struct args_t {
    keel_ints repeats;
    keel_ints axis;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, repeats, -1, NULL, 0, 1e9, "how often; of each place or of all"),
    KEEL_INTS(args_t, axis, -1, "null", -7, 7, "which dim, the batch is 0"),
    { 0 },
};

/* Each place so often as its own number says. */
static keel_status each(keel_emit *e, const keel_ints *repeats, int64_t axis)
{
    const keel_axis_args along = { .axis = axis };
    const int64_t dim = keel_emit_in(e, 0)->shape.dim[axis];
    keel_value part[KEEL_INTS_MAX];
    int n = 0;
    if (repeats->count != dim)
        return keel_fail(KEEL_EARG, "repeats: %d numbers for %lld places", repeats->count,
                         (long long)dim);
    for (int i = 0; i < repeats->count; i++) {
        if (repeats->at[i] == 0) continue;
        KEEL_TRY(keel_emit_part(e, e->in[0], axis, i, 1, &part[n]));
        KEEL_TRY(keel_emit_repeated(e, part[n], axis, repeats->at[i], &part[n]));
        n++;
    }
    if (n == 0) return keel_fail(KEEL_EARG, "repeats: nothing would be left");
    return keel_emit_on(e, &keel_op_concatenate, &along, part, n, e->out);
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    keel_upsample_args op = { .factor = a->repeats.at[0] };
    if (a->axis.count != 1) return keel_fail(KEEL_EUNSUP, "axis null is the batch, too");
    KEEL_TRY(keel_row_axis(e, a->axis.at[0], &op.axis));
    if (a->repeats.count != 1) return each(e, &a->repeats, op.axis);
    if (op.factor == 0) return keel_fail(KEEL_EARG, "repeats: nothing would be left");
    return keel_emit_unary(e, &keel_op_upsample, &op);
}

KEEL_ARGS_OPERATION(ops_repeat, "Repeat", "numpy", 1, "Each place of an axis several times.",
                    .whole = KEEL_WHOLE_KEPT)
