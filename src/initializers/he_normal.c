/* He et al. 2015: truncated normal of variance 2 / fan_in. */
#include "initializers/initializer.h"

static keel_status fill(const void *args, const keel_shape *shape, const keel_chance *c,
                        uint64_t row, double *out)
{
    return keel_variance_scaling(out, shape, args, 2, KEEL_FAN_IN, KEEL_TRUNCATED_NORMAL, c, row);
}

const keel_initializer keel_initializer_he_normal = {
    .type = {
        .name = "HeNormal",
        .module = "keras.initializers",
        .help = "truncated normal of variance 2 / fan_in",
        .args_size = sizeof(keel_fan_args),
        .fields = keel_fan_fields,
    },
    .fill = fill,
    .by_fans = true,
};
