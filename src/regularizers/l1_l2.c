/* L1L2: l1 * sum |w| + l2 * sum w^2. */
#include "regularizers/regularizer.h"

typedef struct args_t {
    double l1, l2;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, l1, "0.0", 0, 1e30, "factor of the sum of absolute values"),
    KEEL_FLOAT(args_t, l2, "0.0", 0, 1e30, "factor of the sum of squares"),
    { 0 },
};

static void penalty(const void *args, keel_penalty *out)
{
    const args_t *a = args;
    out->l1 = a->l1;
    out->l2 = a->l2;
}

const keel_regularizer keel_regularizer_l1_l2 = {
    .type = {
        .name = "L1L2",
        .alias = "l1l2|l1_l2",
        .module = "keras.regularizers",
        .help = "adds l1 times the sum of |w| and l2 times the sum of w^2 to the loss",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .penalty = penalty,
};
