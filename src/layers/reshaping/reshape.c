/* The numbers of a row, in their order, under another shape; one dim may be -1. */
#include "layers/layer.h"
#include "ops/args.h"

typedef struct args_t {
    keel_ints target_shape;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, target_shape, 0, NULL, -1, 1e15, "the shape of one row; -1: what is left"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    keel_reshape_args op = { .shape.rank = a->target_shape.count };
    if (a->target_shape.count > KEEL_RANK_MAX)
        return keel_fail(KEEL_EUNSUP, "target_shape of %d dims; a row has at most %d",
                         a->target_shape.count, KEEL_RANK_MAX);
    for (int i = 0; i < op.shape.rank; i++) op.shape.dim[i] = a->target_shape.at[i];
    return keel_emit_one(e, &keel_op_reshape, &op);
}

const keel_layer keel_layer_reshape = {
    .type = { KEEL_LAYER_HEAD("Reshape", "The same numbers under another shape."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .whole = KEEL_WHOLE_KEPT,
    .emit = emit,
};
