/* The layer ELU as the activation of another: y = x > 0 ? x : alpha (exp(x) - 1). */
#include "activations/_layer.h"
#include "ops/all.h"
#include "ops/args.h"

typedef keel_alpha_args args_t; /* shared with the op */

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, alpha, "1.0", 0, 1e30, "what large negative numbers come near to, negated"),
    KEEL_OF_A_LAYER,
    { 0 },
};

const keel_activation keel_activation_elu_layer = {
    .type = { .name = "ELU",
              .module = "keras.layers",
              .help = "exponential linear unit",
              .args_size = sizeof(args_t),
              .fields = fields },
    .op = &keel_op_elu,
};
