/* A smooth ramp of square roots. */
#include "layers/operations/_operation.h"

typedef struct args_t {
    double b;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, b, "4", 0, 0, "how smooth"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_squareplus_args op = { .b = a->b };
    return keel_emit_unary(e, &keel_op_squareplus, &op);
}

const keel_layer keel_layer_ops_squareplus = {
    .type = { KEEL_OPERATION_HEAD("Squareplus", "nn", "A smooth ramp of square roots."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .operation = true,
    .emit = emit,
};
