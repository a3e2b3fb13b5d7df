/* The dims of a row in another order, counted from 1. */
#include "layers/layer.h"
#include "ops/args.h"

typedef struct args_t {
    keel_ints dims;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, dims, 0, NULL, 1, 7, "which dim of the input each is, from 1"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_shape *in = &keel_emit_in(e, 0)->shape;
    keel_permute_args op = { 0 };
    char shape[96];
    bool taken[KEEL_INTS_MAX + 1] = { false };
    keel_shape_text(shape, in);
    if (a->dims.count != in->rank)
        return keel_fail(KEEL_ESHAPE, "dims has %d numbers for rows of %s", a->dims.count, shape);
    for (int d = 0; d < in->rank; d++) {
        const int64_t from = a->dims.at[d];
        if (from > in->rank || taken[from])
            return keel_fail(KEEL_EARG, "dims must be 1 to %d, each once", in->rank);
        taken[from] = true;
        op.from[d] = from - 1;
    }
    return keel_emit_one(e, &keel_op_permute, &op);
}

const keel_layer keel_layer_permute = {
    .type = { KEEL_LAYER_HEAD("Permute", "Puts the dims of a row into another order."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .whole = KEEL_WHOLE_KEPT,
    .emit = emit,
};
