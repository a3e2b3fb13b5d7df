/* A smaller slope below zero. */
#include "layers/operations/_operation.h"

typedef struct args_t {
    double negative_slope;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, negative_slope, "0.2", 0, 0, "the slope below zero"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_leaky_relu_args op = { .negative_slope = a->negative_slope };
    return keel_emit_unary(e, &keel_op_leaky_relu, &op);
}

KEEL_ARGS_OPERATION(ops_leaky_relu, "LeakyRelu", "nn", 1, "A smaller slope below zero.")
