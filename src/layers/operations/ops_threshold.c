/* Numbers above a threshold; another number in place of the others. */
#include "layers/operations/_operation.h"

typedef struct args_t {
    double threshold, default_value;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, threshold, NULL, 0, 0, "what is above it stays"),
    KEEL_FLOAT(args_t, default_value, NULL, 0, 0, "in place of what is not"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_threshold_args op = { keel_emit_constant(e, a->threshold), a->default_value };
    return keel_emit_unary(e, &keel_op_threshold, &op);
}

KEEL_ARGS_OPERATION(ops_threshold, "Threshold", "nn", 1, "Numbers above a threshold.")
