/* All ones. */
#include "initializers/initializer.h"

static keel_status fill(const void *args, const keel_shape *shape, const keel_chance *c,
                        uint64_t row, double *out)
{
    (void)args, (void)c, (void)row;
    const int64_t count = keel_shape_count(shape);
    for (int64_t i = 0; i < count; i++) out[i] = 1;
    return KEEL_OK;
}

const keel_initializer keel_initializer_ones = {
    .type = {
        .name = "Ones",
        .alias = "one",
        .module = "keras.initializers",
        .help = "all ones",
    },
    .fill = fill,
};
