/* Glorot and Bengio 2010: uniform in +-sqrt(6 / (fan_in + fan_out)). */
#include "initializers/initializer.h"

static keel_status fill(const void *args, const keel_shape *shape, const keel_chance *c,
                        uint64_t row, double *out)
{
    return keel_variance_scaling(out, shape, args, 1, KEEL_FAN_AVG, KEEL_UNIFORM, c, row);
}

const keel_initializer keel_initializer_glorot_uniform = {
    .type = {
        .name = "GlorotUniform",
        .module = "keras.initializers",
        .help = "uniform in +-sqrt(6 / (fan_in + fan_out))",
        .args_size = sizeof(keel_fan_args),
        .fields = keel_fan_fields,
    },
    .fill = fill,
    .by_fans = true,
};
