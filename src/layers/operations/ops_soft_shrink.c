/* Numbers drawn towards 0. */
#include "layers/operations/_operation.h"

typedef struct args_t {
    double threshold;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, threshold, "0.5", 0, 0, "how far"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_threshold_args op = { .threshold = keel_emit_constant(e, a->threshold) };
    return keel_emit_unary(e, &keel_op_soft_shrink, &op);
}

KEEL_ARGS_OPERATION(ops_soft_shrink, "SoftShrink", "nn", 1, "Numbers drawn towards 0.")
