/* He et al. 2015: uniform in +-sqrt(6 / fan_in). */
#include "initializers/initializer.h"

static keel_status fill(const void *args, const keel_shape *shape, const keel_chance *c,
                        uint64_t row, double *out)
{
    return keel_variance_scaling(out, shape, args, 2, KEEL_FAN_IN, KEEL_UNIFORM, c, row);
}

const keel_initializer keel_initializer_he_uniform = {
    .type = {
        .name = "HeUniform",
        .module = "keras.initializers",
        .help = "uniform in +-sqrt(6 / fan_in)",
        .args_size = sizeof(keel_fan_args),
        .fields = keel_fan_fields,
    },
    .fill = fill,
    .by_fans = true,
};
