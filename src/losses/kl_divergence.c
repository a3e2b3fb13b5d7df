/* Kullback-Leibler divergence: l = sum over the last axis of t log(t / p), both cut to [epsilon,
 * 1]; no gradient flows where p was cut. */
#ifndef REAL
#include "losses/each.h"

#define REAL_FILE "losses/kl_divergence.c"
#include "ops/real.h"

const keel_loss keel_loss_kl_divergence = {
    .type = {
        .name = "KLDivergence",
        .alias = "kld|KLD",
        .module = "keras.losses",
        .help = "how far the predicted distribution is from that of the targets",
        .args_size = sizeof(keel_loss_plain),
        .fields = keel_loss_plain_fields,
    },
    .reduction_offset = offsetof(keel_loss_plain, reduction),
    .of = REALS(of),
};

#else
static REAL REAL_(one)(NO_ARGS, const REAL *p, const REAL *t, int64_t n, REAL scale, REAL *grad)
{
    const REAL low = (REAL)KEEL_EPSILON;
    REAL sum = 0;
    for (int64_t j = 0; j < n; j++) {
        const REAL q = p[j] < low ? low : p[j] > 1 ? 1 : p[j];
        const REAL of = t[j] < low ? low : t[j] > 1 ? 1 : t[j];
        sum += of * log(of / q);
        if (grad) grad[j] = q == p[j] ? -scale * of / q : 0;
    }
    return sum;
}

KEEL_LOSS_OF_GROUPS(of)
#endif
