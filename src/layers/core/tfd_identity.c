/* Passes its input on. Keras: what a FeatureSpace does to FeatureSpace.float(). */
#include "layers/layer.h"

static keel_status emit(keel_emit *e)
{
    e->out[0] = e->in[0];
    return KEEL_OK;
}

const keel_layer keel_layer_tfd_identity = {
    .type = { .name = "TFDIdentity",
              .module = "keras.src.layers.preprocessing.feature_space",
              .help = "Gives a feature of a FeatureSpace as it is." },
    .min_inputs = 1,
    .max_inputs = 1,
    .last_dim = true,
    .emit = emit,
};
