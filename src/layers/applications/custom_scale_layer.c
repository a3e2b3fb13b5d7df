/* The first input plus a multiple of the second. Keras: a layer of InceptionResNetV2. */
#include "layers/layer.h"
#include "ops/args.h"

typedef struct args_t {
    double scale;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, scale, NULL, 0, 0, "factor of the second input"),
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const keel_rescaling_args by = { .scale = ((const args_t *)e->args)->scale };
    keel_value both[2] = { e->in[0], -1 };
    KEEL_TRY(keel_emit_on(e, &keel_op_rescaling, &by, &e->in[1], 1, &both[1]));
    return keel_emit_on(e, &keel_op_add, NULL, both, 2, e->out);
}

const keel_layer keel_layer_custom_scale_layer = {
    .type = { .name = "CustomScaleLayer",
              .module = "keras.src.applications.inception_resnet_v2",
              .help = "The first input and the second times a number.",
              .args_size = sizeof(args_t),
              .fields = fields },
    .min_inputs = 2,
    .max_inputs = 2,
    .takes_list = true,
    .emit = emit,
};
