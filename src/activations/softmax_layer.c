/* The layer Softmax as the activation of another. */
#include "activations/_layer.h"
#include "ops/all.h"
#include "ops/args.h"

typedef struct args_t {
    int64_t axis; /* as Keras counts, with the batch */
} args_t;

static const keel_field fields[] = {
    KEEL_INT(args_t, axis, "-1", -8, 7, "the probabilities along it sum to 1"),
    KEEL_OF_A_LAYER,
    { 0 },
};

const keel_activation keel_activation_softmax_layer = {
    .type = { .name = "Softmax",
              .module = "keras.layers",
              .help = "probabilities over an axis",
              .args_size = sizeof(args_t),
              .fields = fields },
    .op = &keel_op_softmax,
    .has_axis = true,
};
