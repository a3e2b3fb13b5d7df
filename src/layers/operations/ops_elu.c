/* An exponential below zero. */
#include "layers/operations/_operation.h"

typedef struct args_t {
    double alpha;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, alpha, "1.0", 0, 0, "its limit below zero"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_alpha_args op = { .alpha = a->alpha };
    return keel_emit_unary(e, &keel_op_elu, &op);
}

KEEL_ARGS_OPERATION(ops_elu, "Elu", "nn", 1, "An exponential below zero.")
