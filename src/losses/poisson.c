/* Poisson: l = mean over the last axis of p - t log(p + epsilon), p the rate of counts t. */
#ifndef REAL
#include "losses/each.h"

#define REAL_FILE "losses/poisson.c"
#include "ops/real.h"

const keel_loss keel_loss_poisson = {
    .type = {
        .name = "Poisson",
        .module = "keras.losses",
        .help = "negative logarithm of the likelihood of counts",
        .args_size = sizeof(keel_loss_plain),
        .fields = keel_loss_plain_fields,
    },
    .reduction_offset = offsetof(keel_loss_plain, reduction),
    .of = REALS(of),
};

#else
static REAL REAL_(at)(NO_ARGS, REAL p, REAL t, REAL *slope)
{
    const REAL rate = p + (REAL)KEEL_EPSILON;
    *slope = 1 - t / rate;
    return p - t * log(rate);
}

KEEL_LOSS_OF_EACH(of)
#endif
