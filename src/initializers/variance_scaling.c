/* Random numbers with variance scale / fan of the shape. Glorot, He and LeCun initializers are
 * special cases. */
#include "initializers/initializer.h"

typedef struct args_t {
    keel_fan_args fans;
    double scale;
    int mode, distribution;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, scale, "1.0", 1e-30, 1e30, "the variance is this divided by the fan"),
    KEEL_CHOICE(args_t, mode, "\"fan_in\"", "fan_in|fan_out|fan_avg", "which fan"),
    KEEL_CHOICE(args_t, distribution, "\"truncated_normal\"",
                "truncated_normal|untruncated_normal|uniform|normal",
                "normal means truncated_normal"),
    KEEL_FAN_FIELDS(args_t, fans.),
    { 0 },
};

static keel_status fill(const void *args, const keel_shape *shape, const keel_chance *c,
                        uint64_t row, double *out)
{
    const args_t *a = args;
    const int d = a->distribution == 3 ? KEEL_TRUNCATED_NORMAL : a->distribution;
    return keel_variance_scaling(out, shape, &a->fans, a->scale, (keel_fan_mode)a->mode,
                                 (keel_distribution)d, c, row);
}

const keel_initializer keel_initializer_variance_scaling = {
    .type = {
        .name = "VarianceScaling",
        .module = "keras.initializers",
        .help = "random numbers with variance scale / fan of the shape",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .fill = fill,
    .by_fans = true,
};
