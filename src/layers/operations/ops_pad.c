/* A number around the places of a row. */
#include "layers/operations/_operation.h"
#include "ops/pad.h"

typedef struct args_t {
    keel_ints pad_width;
    int mode;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, pad_width, -2, NULL, 0, 1e9, "places before and behind each dim"),
    KEEL_CHOICE(args_t, mode, "\"constant\"", "constant", "what the new places hold"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const int rank = keel_emit_in(e, 0)->shape.rank;
    keel_operand value;
    keel_pad_args op = { 0 };
    KEEL_TRY(keel_operand_at(e, 1, "constant_values", &value));
    if (value.given && value.value >= 0)
        return keel_fail(KEEL_EUNSUP, "constant_values must be a number");
    if (a->pad_width.count != 2 * (rank + 1) || a->pad_width.at[0] || a->pad_width.at[1])
        return keel_fail(KEEL_EUNSUP, "pad_width: a pair for each of %d dims, (0, 0) for the batch",
                         rank + 1);
    op.value = value.given ? value.constant : 0;
    for (int d = 0; d < rank; d++) {
        op.before[d] = a->pad_width.at[2 * d + 2];
        op.behind[d] = a->pad_width.at[2 * d + 3];
    }
    return keel_emit_unary(e, &keel_op_pad, &op);
}

const keel_layer keel_layer_ops_pad = {
    .type = { KEEL_OPERATION_HEAD("Pad", "numpy", "A number around the places of a row."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .operation = true,
    .emit = emit,
};
