/* An activation by its name, as a layer of its own. */
#include "layers/layer.h"

typedef struct args_t {
    keel_object activation;
} args_t;

static const keel_field fields[] = {
    KEEL_OBJECT(args_t, activation, NULL, keel_activation_find, "which one, by its name"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_op *op = ((const keel_activation *)a->activation.type)->op;
    if (op && op != &keel_op_relu && op != &keel_op_relu6) e->gives = KEEL_WHOLE_NEVER;
    return keel_emit_activation(e, &a->activation, e->in[0], e->out);
}

const keel_layer keel_layer_activation = {
    .type = { KEEL_LAYER_HEAD("Activation", "Applies an activation function."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .supports_masking = true,
    .last_dim = true,
    .whole = KEEL_WHOLE_KEPT,
    .emit = emit,
};
