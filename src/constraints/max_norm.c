/* Shortens vectors that are longer than max_value to that length. */
#include "constraints/constraint.h"

typedef struct args_t {
    double max_value;
    keel_ints axis;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, max_value, "2", 0, 0, "the greatest length"),
    KEEL_CONSTRAINT_AXIS(args_t),
    { 0 },
};

static const keel_ints *axis(const void *args)
{
    return &((const args_t *)args)->axis;
}

static void projection(const void *args, keel_projection *out)
{
    *out =
        (keel_projection){ .lengths = true, .most = ((const args_t *)args)->max_value, .rate = 1 };
}

const keel_constraint keel_constraint_max_norm = {
    .type = { .name = "MaxNorm",
              .alias = "max_norm|maxnorm",
              .module = "keras.constraints",
              .help = "vectors of a weight are at most so long",
              .args_size = sizeof(args_t),
              .fields = fields },
    .axis = axis,
    .projection = projection,
};
