/* x where it exceeds a threshold, else a value: y = x > threshold ? x : default_value.
 * Keras gives the two arguments no default, so the bare name is refused by the field table. */
#include "activations/activation.h"
#include "ops/all.h"
#include "ops/args.h"

typedef keel_threshold_args args_t; /* of the op, too */

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, threshold, NULL, 0, 0, "what x must exceed"),
    { .key = "default_value",
      .kind = KEEL_FIELD_FLOAT,
      .offset = offsetof(args_t, value),
      .help = "the value where it does not" },
    { 0 },
};

const keel_activation keel_activation_threshold = {
    .type = {
        .name = "threshold",
        .alias = "threshold",
        .module = "keras.activations",
        .help = "x where it exceeds a threshold, else a value",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .op = &keel_op_threshold,
};
