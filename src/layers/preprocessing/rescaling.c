/* y = x scale + offset. */
#include "layers/layer.h"
#include "ops/args.h"

typedef struct args_t {
    double scale, offset;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, scale, NULL, 0, 0, "multiplies"),
    KEEL_FLOAT(args_t, offset, "0.0", 0, 0, "is added"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_rescaling_args op = { .scale = a->scale, .offset = a->offset };
    return keel_emit_one(e, &keel_op_rescaling, &op);
}

const keel_layer keel_layer_rescaling = {
    .type = { .name = "Rescaling",
              .module = "keras.layers",
              .help = "Multiplies by a scale and adds an offset.",
              .args_size = sizeof(args_t),
              .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .supports_masking = true,
    .emit = emit,
};
