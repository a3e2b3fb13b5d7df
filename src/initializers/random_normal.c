/* Normal distribution with a mean and a standard deviation. */
#include "initializers/initializer.h"

typedef struct args_t {
    keel_seeded seeded;
    double mean, stddev;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, mean, "0.0", 0, 0, "mean"),
    KEEL_FLOAT(args_t, stddev, "0.05", 0, 0, "standard deviation"),
    KEEL_SEED_FIELD(args_t),
    { 0 },
};

static keel_status fill(const void *args, const keel_shape *shape, const keel_chance *c,
                        uint64_t row, double *out)
{
    const args_t *a = args;
    const keel_chance mine = keel_seeded_chance(&a->seeded, c, &row);
    keel_fill(out, keel_shape_count(shape), KEEL_UNTRUNCATED_NORMAL, a->mean, a->stddev, &mine,
              row);
    return KEEL_OK;
}

const keel_initializer keel_initializer_random_normal = {
    .type = {
        .name = "RandomNormal",
        .alias = "normal",
        .module = "keras.initializers",
        .help = "normal distribution with a mean and a standard deviation",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .fill = fill,
};
