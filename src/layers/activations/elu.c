/* y = x where x > 0, else alpha (exp(x) - 1). */
#include "layers/layer.h"
#include "ops/args.h"

typedef struct args_t {
    double alpha;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, alpha, "1.0", 0, 1e30, "what large negative numbers come near to, negated"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_alpha_args op = { .alpha = a->alpha };
    return keel_emit_one(e, &keel_op_elu, &op);
}

const keel_layer keel_layer_elu = {
    .type = { KEEL_LAYER_HEAD("ELU", "Exponential linear unit."), .args_size = sizeof(args_t),
              .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .supports_masking = true,
    .last_dim = true,
    .emit = emit,
};
