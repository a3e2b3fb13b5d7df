/* How many are not 0. */
#include "layers/operations/_operation.h"

typedef struct args_t {
    keel_ints axis;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, axis, -1, "null", -7, 7, "over which dims, the batch is 0"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_compare_args differs = { .is = KEEL_NOT_EQUAL };
    keel_reduce_args sum = { .to = KEEL_REDUCE_SUM };
    keel_value x;
    KEEL_TRY(keel_reduce_axes(e, &a->axis, &sum));
    KEEL_TRY(keel_emit_on(e, &keel_op_compare, &differs, e->in, 1, &x));
    return keel_emit_on(e, &keel_op_reduce, &sum, &x, 1, e->out);
}

KEEL_ARGS_OPERATION(ops_count_nonzero, "CountNonzero", "numpy", 1, "How many are not 0.",
                    .places = true, .whole = KEEL_WHOLE_ALWAYS)
