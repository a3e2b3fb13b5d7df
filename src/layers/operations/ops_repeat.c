/* Each place of an axis several times. */
#include "layers/operations/_operation.h"

typedef struct args_t {
    keel_ints repeats;
    keel_ints axis;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, repeats, -1, NULL, 1, 1e9, "how often"),
    KEEL_INTS(args_t, axis, -1, "null", -7, 7, "which dim, the batch is 0"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    keel_upsample_args op = { .factor = a->repeats.at[0] };
    if (a->repeats.count != 1)
        return keel_fail(KEEL_EUNSUP, "repeats: one number for all places is supported");
    if (a->axis.count != 1) return keel_fail(KEEL_EUNSUP, "axis null is the batch, too");
    KEEL_TRY(keel_row_axis(e, a->axis.at[0], &op.axis));
    return keel_emit_unary(e, &keel_op_upsample, &op);
}

KEEL_ARGS_OPERATION(ops_repeat, "Repeat", "numpy", 1, "Each place of an axis several times.")
