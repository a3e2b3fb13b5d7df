/* All numbers of a row in one dim, in their order. */
#include "layers/layer.h"
#include "ops/args.h"

typedef struct args_t {
    int data_format;
} args_t;

static const keel_field fields[] = {
    KEEL_DATA_FORMAT(args_t),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    keel_reshape_args op = { .shape = { .rank = 1, .dim = { -1 } } };
    if (keel_emit_in(e, 0)->shape.rank == 0) op.shape.dim[0] = 1;
    return keel_emit_one(e, &keel_op_reshape, &op);
}

const keel_layer keel_layer_flatten = {
    .type = { KEEL_LAYER_HEAD("Flatten", "Puts all numbers of a row into one dim."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .whole = KEEL_WHOLE_KEPT,
    .emit = emit,
};
