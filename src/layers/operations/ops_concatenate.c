/* Values one after another along an axis. */
#include "layers/operations/_operation.h"

typedef struct args_t {
    int64_t axis;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, axis, "0", -7, 7, "along which dim, the batch is 0"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    keel_axis_args op;
    KEEL_TRY(keel_row_axis(e, a->axis, &op.axis));
    return keel_emit_one(e, &keel_op_concatenate, &op);
}

KEEL_ARGS_OPERATION(ops_concatenate, "Concatenate", "numpy", -1,
                    "Values one after another along an axis.", .whole = KEEL_WHOLE_KEPT)
