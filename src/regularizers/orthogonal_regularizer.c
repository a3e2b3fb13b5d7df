/* OrthogonalRegularizer: factor times the mean |cosine| over all pairs of rows, or columns, of a
 * matrix. Its gradient needs the whole weight (train/orthogonal.c). */
#include "regularizers/regularizer.h"

enum { ROWS, COLUMNS };

typedef struct args_t {
    double factor;
    int mode;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, factor, "0.01", 0, 1e30, "factor of the mean of |cosine|"),
    KEEL_CHOICE(args_t, mode, "\"rows\"", "rows|columns", "which vectors are made orthogonal"),
    { 0 },
};

static void penalty(const void *args, keel_penalty *out)
{
    const args_t *a = args;
    out->orthogonal = a->factor;
    out->columns = a->mode == COLUMNS;
}

const keel_regularizer keel_regularizer_orthogonal_regularizer = {
    .type = {
        .name = "OrthogonalRegularizer",
        .alias = "orthogonal_regularizer",
        .module = "keras.regularizers",
        .help = "adds factor times the mean |cosine| of two rows, or columns, to the loss",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .penalty = penalty,
};
