/* The layer LeakyReLU as the activation of another: y = x > 0 ? x : negative_slope x. */
#include "activations/_layer.h"
#include "ops/all.h"
#include "ops/args.h"

typedef keel_leaky_relu_args args_t; /* shared with the op */

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, negative_slope, "0.3", 0, 1e30, "slope below 0"),
    KEEL_OF_A_LAYER,
    { 0 },
};

const keel_activation keel_activation_leaky_relu_layer = {
    .type = { .name = "LeakyReLU",
              .module = "keras.layers",
              .help = "rectifier with a slope below 0",
              .args_size = sizeof(args_t),
              .fields = fields },
    .op = &keel_op_leaky_relu,
};
