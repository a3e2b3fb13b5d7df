/* Where rows come in. It emits nothing, because the model makes the value. Its shape (batch_shape,
 * or shape and batch_size) is read with the keys that all layers share, see layer.c. */
#include "layers/layer.h"

static const keel_field fields[] = {
    KEEL_REFUSE("sparse", "false", "sparse rows"),
    KEEL_REFUSE("ragged", "false", "ragged rows"),
    KEEL_REFUSE("optional", "false", "an input that may be left out"),
    { 0 },
};

const keel_layer keel_layer_input_layer = {
    .type = { KEEL_LAYER_HEAD("InputLayer",
                              "Where rows come in: \"shape\" (of one row) or \"batch_shape\"."),
              .fields = fields },
};
