/* All zeros. */
#include "initializers/initializer.h"

static keel_status fill(const void *args, const keel_shape *shape, const keel_chance *c,
                        uint64_t row, double *out)
{
    (void)args, (void)c, (void)row;
    const int64_t count = keel_shape_count(shape);
    for (int64_t i = 0; i < count; i++) out[i] = 0;
    return KEEL_OK;
}

const keel_initializer keel_initializer_zeros = {
    .type = {
        .name = "Zeros",
        .alias = "zero",
        .module = "keras.initializers",
        .help = "all zeros",
    },
    .fill = fill,
};
