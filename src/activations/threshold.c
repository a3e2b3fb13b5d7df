/* x where it is above a threshold, else a fixed value: y = x > threshold ? x : default_value.
 * In Keras the two arguments have no default, so the field table refuses the bare name. */
#include "activations/activation.h"
#include "ops/all.h"
#include "ops/args.h"

typedef keel_threshold_args args_t; /* shared with the op */

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, threshold, NULL, 0, 0, "x is kept where it is larger than this"),
    { .key = "default_value",
      .kind = KEEL_FIELD_FLOAT,
      .offset = offsetof(args_t, value),
      .help = "the value everywhere else" },
    { 0 },
};

const keel_activation keel_activation_threshold = {
    .type = {
        .name = "threshold",
        .alias = "threshold",
        .module = "keras.activations",
        .help = "x where it is above a threshold, else a fixed value",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .op = &keel_op_threshold,
};
