/* Moves the lengths of vectors into a range: at once, or by a part of the way in each step. */
#include "constraints/constraint.h"

typedef struct args_t {
    double min_value, max_value, rate;
    keel_ints axis;
} args_t;

static const keel_field fields[] = {
    KEEL_FLOAT(args_t, min_value, "0.0", 0, 0, "the least length, also if it is above max_value"),
    KEEL_FLOAT(args_t, max_value, "1.0", 0, 0, "the greatest length"),
    KEEL_FLOAT(args_t, rate, "1.0", 0, 0, "how much of the way a step goes"),
    KEEL_CONSTRAINT_AXIS(args_t),
    { 0 },
};

static const keel_ints *axis(const void *args)
{
    return &((const args_t *)args)->axis;
}

static void projection(const void *args, keel_projection *out)
{
    const args_t *a = args;
    *out = (keel_projection){
        .lengths = true, .least = a->min_value, .most = a->max_value, .rate = a->rate
    };
}

const keel_constraint keel_constraint_min_max_norm = {
    .type = { .name = "MinMaxNorm",
              .alias = "min_max_norm|minmaxnorm",
              .module = "keras.constraints",
              .help = "vectors of a weight have lengths in a range",
              .args_size = sizeof(args_t),
              .fields = fields },
    .axis = axis,
    .projection = projection,
};
