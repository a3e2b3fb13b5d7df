/* Numbers below 0 become 0. */
#include "constraints/constraint.h"

static void projection(const void *args, keel_projection *out)
{
    (void)args;
    out->non_negative = true;
}

const keel_constraint keel_constraint_non_neg = {
    .type = { .name = "NonNeg",
              .alias = "non_neg|nonneg",
              .module = "keras.constraints",
              .help = "numbers below 0 become 0" },
    .projection = projection,
};
