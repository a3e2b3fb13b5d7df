/* Vectors get the length 1. */
#include "constraints/constraint.h"

typedef struct args_t {
    keel_ints axis;
} args_t;

static const keel_field fields[] = {
    KEEL_CONSTRAINT_AXIS(args_t),
    { 0 },
};

static const keel_ints *axis(const void *args)
{
    return &((const args_t *)args)->axis;
}

static void projection(const void *args, keel_projection *out)
{
    (void)args;
    *out = (keel_projection){ .lengths = true, .least = 1, .most = 1, .rate = 1 };
}

const keel_constraint keel_constraint_unit_norm = {
    .type = { .name = "UnitNorm",
              .alias = "unit_norm|unitnorm",
              .module = "keras.constraints",
              .help = "vectors of a weight have the length 1",
              .args_size = sizeof(args_t),
              .fields = fields },
    .axis = axis,
    .projection = projection,
};
