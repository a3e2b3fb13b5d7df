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

KEEL_ARGS_OPERATION(ops_squareplus, "Squareplus", "nn", 1, "A smooth ramp of square roots.")
