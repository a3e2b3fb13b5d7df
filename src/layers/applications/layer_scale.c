/* Multiplies each channel by a weight of its own. Keras: a layer of ConvNeXt. */
#include "initializers/constant.h"
#include "layers/layer.h"
#include "ops/args.h"

typedef struct args_t {
    double init_values;
    int64_t projection_dim;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, init_values, NULL, 0, 0, "what the weights begin with"),
    KEEL_INT(args_t, projection_dim, NULL, 1, 1e9, "how many channels there are"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_shape *in = &keel_emit_in(e, 0)->shape;
    keel_constant_args value = { .number = a->init_values };
    const keel_object begin = { .type = keel_initializer_find("constant"), .args = &value };
    const keel_weight_decl gamma = { .name = "variable",
                                     .shape = KEEL_SHAPE(a->projection_dim),
                                     .initializer = &begin };
    keel_weights w = { 0 };
    if (in->rank < 1 || in->dim[in->rank - 1] != a->projection_dim)
        return keel_fail(KEEL_ESHAPE, "projection_dim is %lld, where the input has other channels",
                         (long long)a->projection_dim);
    KEEL_TRY(keel_emit_weight(e, &gamma, &w));
    return keel_emit_weighted(e, &keel_op_scale, NULL, e->in[0], &w, e->out);
}

const keel_layer keel_layer_layer_scale = {
    .type = { .name = "LayerScale",
              .module = "keras.src.applications.convnext",
              .help = "Each channel times a weight of its own.",
              .args_size = sizeof(args_t),
              .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .last_dim = true,
    .emit = emit,
};
