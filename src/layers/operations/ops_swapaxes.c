/* Two dims in each other's place. */
#include "layers/operations/_operation.h"

typedef struct args_t {
    int64_t axis1;
    int64_t axis2;
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, axis1, NULL, -7, 7, "one, the batch is 0"),
    KEEL_INT(args_t, axis2, NULL, -7, 7, "the other"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const int rank = keel_emit_in(e, 0)->shape.rank;
    keel_permute_args op = { 0 };
    int64_t i, k;
    KEEL_TRY(keel_row_axis(e, a->axis1, &i));
    KEEL_TRY(keel_row_axis(e, a->axis2, &k));
    for (int d = 0; d < rank; d++) op.from[d] = d == i ? k : d == k ? i : d;
    return keel_emit_unary(e, &keel_op_permute, &op);
}

KEEL_ARGS_OPERATION(ops_swapaxes, "Swapaxes", "numpy", 1, "Two dims in each other's place.",
                    .whole = KEEL_WHOLE_KEPT)
