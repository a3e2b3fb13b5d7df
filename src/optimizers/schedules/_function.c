/* A schedule that is a function of the program; see rate.h. */
#include "optimizers/schedules/rate.h"

static const keel_field fields[] = { { 0 } };

static double at(const void *args, int64_t step)
{
    const keel_rate_call *a = args;
    return a->rate(a->context, step);
}

const keel_rate keel_rate_function = {
    .type = { .name = "function",
              .module = "keel",
              .help = "a function of the program",
              .args_size = sizeof(keel_rate_call),
              .fields = fields },
    .at = at,
};
