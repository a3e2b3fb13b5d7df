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

KEEL_ARGS_OPERATION(ops_gelu, "Gelu", "nn", 1, "The Gaussian error linear unit.")
