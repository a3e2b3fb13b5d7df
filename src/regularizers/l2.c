/* L2: l2 * sum w^2, without a factor of one half. */
#include "regularizers/regularizer.h"

typedef struct args_t {
    double l2;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, l2, "0.01", 0, 1e30, "factor of the sum of squares"),
    { 0 },
};

static void penalty(const void *args, keel_penalty *out)
{
    out->l2 = ((const args_t *)args)->l2;
}

const keel_regularizer keel_regularizer_l2 = {
    .type = {
        .name = "L2",
        .alias = "l2",
        .module = "keras.regularizers",
        .help = "adds l2 times the sum of w^2 to the loss",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .penalty = penalty,
};
