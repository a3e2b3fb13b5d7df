/* Fills a weight with one number. */
#include "initializers/initializer.h"

typedef struct args_t {
    double value;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, value, "0.0", 0, 0, "the number"),
    { 0 },
};

static keel_status fill(const void *args, const keel_shape *shape, const keel_chance *c,
                        uint64_t row, double *out)
{
    (void)c, (void)row;
    const args_t *a = args;
    const int64_t count = keel_shape_count(shape);
    for (int64_t i = 0; i < count; i++) out[i] = a->value;
    return KEEL_OK;
}

const keel_initializer keel_initializer_constant = {
    .type = {
        .name = "Constant",
        .module = "keras.initializers",
        .help = "one number for all elements",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .fill = fill,
};
