/* y = x where x > 0, else negative_slope x. */
#include "layers/layer.h"
#include "ops/args.h"

typedef struct args_t {
    double negative_slope;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, negative_slope, "0.3", 0, 1e30, "slope below 0"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_leaky_relu_args op = { .negative_slope = a->negative_slope };
    return keel_emit_one(e, &keel_op_leaky_relu, &op);
}

const keel_layer keel_layer_leaky_relu = {
    .type = { KEEL_LAYER_HEAD("LeakyReLU", "Rectifier with a slope below 0."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .supports_masking = true,
    .last_dim = true,
    .whole = KEEL_WHOLE_TAKEN,
    .emit = emit,
};
