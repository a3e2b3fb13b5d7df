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
    const keel_threshold_args op = { .threshold = a->threshold };
    return keel_emit_unary(e, &keel_op_soft_shrink, &op);
}

const keel_layer keel_layer_ops_soft_shrink = {
    .type = { KEEL_OPERATION_HEAD("SoftShrink", "nn", "Numbers drawn towards 0."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .operation = true,
    .emit = emit,
};
