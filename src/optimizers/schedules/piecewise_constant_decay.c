/* values[i] up to boundaries[i], included; after all boundaries the last value. */
#include "optimizers/schedules/rate.h"
#include <math.h>

typedef struct args_t {
    keel_reals boundaries, values;
} args_t;

static const keel_field fields[] = {
    KEEL_REALS(args_t, boundaries, "the last step of each value but the last"),
    KEEL_REALS(args_t, values, "rates, one more than boundaries"),
    KEEL_IGNORE("name", "of the schedule"),
    { 0 },
};

static keel_status check(const void *args)
{
    const args_t *a = args;
    if (a->values.count == a->boundaries.count + 1) return KEEL_OK;
    return keel_fail(KEEL_EARG,
                     "PiecewiseConstantDecay: %d boundaries and %d values: one value more than "
                     "boundaries is needed",
                     a->boundaries.count, a->values.count);
}

/* Keras takes boundaries as integer steps, and adds the values of all ranges that a step is in. */
static double at(const void *args, int64_t step)
{
    const args_t *a = args;
    const double *b = a->boundaries.at, at_step = (double)step;
    const int n = a->boundaries.count;
    float rate = 0;
    if (at_step <= trunc(b[0])) rate += (float)a->values.at[0];
    if (at_step > trunc(b[n - 1])) rate += (float)a->values.at[n];
    for (int i = 1; i < n; i++)
        if (at_step > trunc(b[i - 1]) && at_step <= trunc(b[i])) rate += (float)a->values.at[i];
    return (double)rate;
}

const keel_rate keel_rate_piecewise_constant_decay = {
    .type = {
        .name = "PiecewiseConstantDecay",
        .module = "keras.optimizers.schedules",
        .help = "a rate for each range of steps",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .check = check,
    .at = at,
};
