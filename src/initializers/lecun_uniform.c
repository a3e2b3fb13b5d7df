/* LeCun et al. 1998: uniform in +-sqrt(3 / fan_in). */
#include "initializers/initializer.h"

static keel_status fill(const void *args, const keel_shape *shape, const keel_chance *c,
                        uint64_t row, double *out)
{
    const keel_chance mine = keel_seeded_chance(args, c);
    keel_variance_scaling(out, shape, 1, KEEL_FAN_IN, KEEL_UNIFORM, &mine, row);
    return KEEL_OK;
}

const keel_initializer keel_initializer_lecun_uniform = {
    .type = {
        .name = "LecunUniform",
        .module = "keras.initializers",
        .help = "uniform in +-sqrt(3 / fan_in)",
        .args_size = sizeof(keel_seeded),
        .fields = keel_fan_fields,
    },
    .fill = fill,
    .by_fans = true,
};
