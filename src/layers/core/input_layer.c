/* Where rows come in. It emits nothing, because the model makes the value. Its shape (batch_shape,
 * or shape and batch_size) is read with the keys that all layers share, see layer.c. */
#include "layers/layer.h"

typedef struct args_t {
    bool sparse, optional;
} args_t;

static const keel_field fields[] = {
    KEEL_BOOL(args_t, sparse, "false",
              "Keras may hold a batch without its zeros: the same numbers"),
    KEEL_REFUSE("ragged", "false", "rows of a batch that differ in length; --pad pads them"),
    KEEL_BOOL(args_t, optional, "false", "Keras may be given None; here rows must have it"),
    { 0 },
};

const keel_layer keel_layer_input_layer = {
    .type = { KEEL_LAYER_HEAD("InputLayer",
                              "Where rows come in: \"shape\" (of one row) or \"batch_shape\"."),
              .args_size = sizeof(args_t), .fields = fields },
};
