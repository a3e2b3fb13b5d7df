/* Logarithm of the hyperbolic cosine: l = mean over the last axis of log cosh(p - t), which is
 * x + softplus(-2 x) - log 2, finite for every x = p - t; its slope is tanh(x). */
#ifndef REAL
#include "losses/each.h"

#define REAL_FILE "losses/log_cosh.c"
#include "ops/real.h"

const keel_loss keel_loss_log_cosh = {
    .type = {
        .name = "LogCosh",
        .module = "keras.losses",
        .help = "mean of the logarithm of cosh of the differences: squares when small, sizes when large",
        .args_size = sizeof(keel_loss_plain),
        .fields = keel_loss_plain_fields,
    },
    .reduction_offset = offsetof(keel_loss_plain, reduction),
    .of = REALS(of),
};

#else
static REAL REAL_(at)(NO_ARGS, REAL p, REAL t, REAL *slope)
{
    const REAL x = p - t, size = fabs(x);
    *slope = tanh(x);
    return size + log1p(exp(-2 * size)) - (REAL)0.69314718055994530942f; /* float32 in Keras, too */
}

KEEL_LOSS_OF_EACH(of)
#endif
