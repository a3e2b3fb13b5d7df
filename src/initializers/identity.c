/* A multiple of the identity matrix, which need not be square. */
#include "initializers/initializer.h"

typedef struct args_t {
    double gain;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, gain, "1.0", 0, 0, "the matrix is multiplied by this"),
    { 0 },
};

static keel_status fill(const void *args, const keel_shape *shape, const keel_chance *c,
                        uint64_t row, double *out)
{
    (void)c, (void)row;
    const args_t *a = args;
    if (shape->rank != 2)
        return keel_fail(KEEL_ESHAPE, "Identity initializes matrices, not a weight of rank %d",
                         shape->rank);
    for (int64_t i = 0; i < shape->dim[0]; i++)
        for (int64_t j = 0; j < shape->dim[1]; j++)
            out[i * shape->dim[1] + j] = i == j ? a->gain : 0;
    return KEEL_OK;
}

const keel_initializer keel_initializer_identity = {
    .type = {
        .name = "Identity",
        .alias = "IdentityInitializer",
        .module = "keras.initializers",
        .help = "a multiple of the identity matrix",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .fill = fill,
};
