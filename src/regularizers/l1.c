/* L1: l1 * sum |w|. */
#include "regularizers/regularizer.h"

typedef struct args_t {
    double l1;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, l1, "0.01", 0, 1e30, "factor of the sum of absolute values"),
    { 0 },
};

static void penalty(const void *args, keel_penalty *out)
{
    out->l1 = ((const args_t *)args)->l1;
}

const keel_regularizer keel_regularizer_l1 = {
    .type = {
        .name = "L1",
        .alias = "l1",
        .module = "keras.regularizers",
        .help = "adds l1 times the sum of |w| to the loss",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .penalty = penalty,
};
