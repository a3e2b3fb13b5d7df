/* The loss whose values a program gives; see values.h. */
#ifndef REAL
#include "losses/values.h"

#define REAL_FILE "losses/_values.c"
#include "ops/real.h"

static const keel_field fields[] = {
    KEEL_LOSS_FIELDS(keel_values_args),
    KEEL_VALUES_PROGRAM,
    { 0 },
};

const keel_loss keel_loss_values = {
    .type = { .name = KEEL_VALUES,
              .module = "keel",
              .help = "the values of a program",
              .args_size = sizeof(keel_values_args),
              .fields = fields },
    .reduction_offset = offsetof(keel_values_args, reduction),
    .of = REALS(of),
};

#else
static double REAL_(of)(keel_elements *e)
{
    const REAL *p = e->y_pred, scale = (REAL)(e->scale / (double)e->last);
    REAL *grad = e->grad;
    double sum = 0;
    for (int64_t j = 0; j < e->count * e->last; j++) {
        sum += (double)p[j];
        if (grad) grad[j] = scale;
    }
    return sum / (double)e->last;
}
#endif
