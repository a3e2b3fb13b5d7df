/* y = min(x, max_value) where x >= threshold, else negative_slope (x - threshold). */
#include "layers/layer.h"
#include "ops/args.h"
#include <math.h>

typedef struct args_t {
    double max_value, negative_slope, threshold;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, max_value, "null", 0, INFINITY, "the largest output; null: any"),
    KEEL_FLOAT(args_t, negative_slope, "0.0", 0, 1e30, "slope below the threshold"),
    KEEL_FLOAT(args_t, threshold, "0.0", 0, 1e30, "where the output begins"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const bool capped = isfinite(a->max_value);
    const keel_relu_args op = { .capped = capped,
                                .max_value = capped ? keel_emit_constant(e, a->max_value) : 0,
                                .negative_slope = a->negative_slope,
                                .threshold = keel_emit_constant(e, a->threshold) };
    return keel_emit_one(e, &keel_op_relu, &op);
}

const keel_layer keel_layer_relu = {
    .type = { KEEL_LAYER_HEAD("ReLU", "Rectifier, with a cap, a slope and a threshold."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .supports_masking = true,
    .last_dim = true,
    .whole = KEEL_WHOLE_KEPT,
    .emit = emit,
};
