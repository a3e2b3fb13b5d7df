/* The layer ReLU as the activation of another: y = min(x, max_value) where x >= threshold, else
 * negative_slope (x - threshold). */
#include "activations/_layer.h"
#include "ops/all.h"
#include "ops/args.h"
#include <math.h>

typedef keel_relu_args args_t; /* shared with the op */

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, max_value, "null", 0, INFINITY, "the largest output; null: any"),
    KEEL_FLOAT(args_t, negative_slope, "0.0", 0, 1e30, "slope below the threshold"),
    KEEL_FLOAT(args_t, threshold, "0.0", 0, 1e30, "where the output begins"),
    KEEL_OF_A_LAYER,
    { 0 },
};

static keel_status ready(void *args)
{
    args_t *a = args;
    a->capped = isfinite(a->max_value);
    return KEEL_OK;
}

const keel_activation keel_activation_relu_layer = {
    .type = { .name = "ReLU",
              .module = "keras.layers",
              .help = "rectifier, with a cap, a slope and a threshold",
              .args_size = sizeof(args_t),
              .fields = fields,
              .ready = ready },
    .op = &keel_op_relu,
};
