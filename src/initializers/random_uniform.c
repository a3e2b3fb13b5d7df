/* Uniform distribution between two numbers. */
#include "initializers/initializer.h"

typedef struct args_t {
    keel_seeded seeded;
    double minval, maxval;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, minval, "-0.05", 0, 0, "lower bound, included"),
    KEEL_FLOAT(args_t, maxval, "0.05", 0, 0, "upper bound, excluded"),
    KEEL_SEED_FIELD(args_t),
    { 0 },
};

static keel_status fill(const void *args, const keel_shape *shape, const keel_chance *c,
                        uint64_t row, double *out)
{
    const args_t *a = args;
    const keel_chance mine = keel_seeded_chance(&a->seeded, c, &row);
    keel_fill(out, keel_shape_count(shape), KEEL_UNIFORM, a->minval, a->maxval - a->minval, &mine,
              row);
    return KEEL_OK;
}

const keel_initializer keel_initializer_random_uniform = {
    .type = {
        .name = "RandomUniform",
        .alias = "uniform",
        .module = "keras.initializers",
        .help = "uniform distribution between two numbers",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .fill = fill,
};
