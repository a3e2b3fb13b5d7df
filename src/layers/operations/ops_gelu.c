/* The Gaussian error linear unit. */
#include "layers/operations/_operation.h"

typedef struct args_t {
    bool approximate;
} args_t;

static const keel_field fields[] = {
    KEEL_BOOL(args_t, approximate, "true", "by tanh"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_gelu_args op = { .approximate = a->approximate };
    return keel_emit_unary(e, &keel_op_gelu, &op);
}

const keel_layer keel_layer_ops_gelu = {
    .type = { KEEL_OPERATION_HEAD("Gelu", "nn", "The Gaussian error linear unit."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .operation = true,
    .emit = emit,
};
