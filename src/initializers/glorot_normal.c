/* Glorot and Bengio 2010: truncated normal of variance 2 / (fan_in + fan_out). */
#include "initializers/initializer.h"

static keel_status fill(const void *args, const keel_shape *shape, const keel_chance *c,
                        uint64_t row, double *out)
{
    const keel_chance mine = keel_seeded_chance(args, c);
    keel_variance_scaling(out, shape, 1, KEEL_FAN_AVG, KEEL_TRUNCATED_NORMAL, &mine, row);
    return KEEL_OK;
}

const keel_initializer keel_initializer_glorot_normal = {
    .type = {
        .name = "GlorotNormal",
        .module = "keras.initializers",
        .help = "truncated normal of variance 2 / (fan_in + fan_out)",
        .args_size = sizeof(keel_seeded),
        .fields = keel_fan_fields,
    },
    .fill = fill,
    .by_fans = true,
};
