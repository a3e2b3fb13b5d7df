/* Categorical hinge: l = max(neg - pos + 1, 0), pos = sum of t p and neg = the largest of (1 - t) p
 * over the last axis. Where several are the largest they share its gradient, as in TensorFlow. */
#ifndef REAL
#include "losses/each.h"

#define REAL_FILE "losses/categorical_hinge.c"
#include "ops/real.h"

const keel_loss keel_loss_categorical_hinge = {
    .type = {
        .name = "CategoricalHinge",
        .module = "keras.losses",
        .help = "how little the prediction for the class exceeds the best of the others",
        .args_size = sizeof(keel_loss_plain),
        .fields = keel_loss_plain_fields,
    },
    .reduction_offset = offsetof(keel_loss_plain, reduction),
    .target = KEEL_TARGET_ONE_HOT,
    .of = REALS(of),
};

#else
static REAL REAL_(one)(NO_ARGS, const REAL *p, const REAL *t, int64_t n, REAL scale, REAL *grad)
{
    REAL pos = 0, neg = (1 - t[0]) * p[0], largest = 0;
    for (int64_t j = 0; j < n; j++) {
        pos += t[j] * p[j];
        neg = fmax(neg, (1 - t[j]) * p[j]);
    }
    const REAL loss = neg - pos + 1;
    for (int64_t j = 0; grad && j < n; j++) largest += (REAL)((1 - t[j]) * p[j] == neg);
    for (int64_t j = 0; grad && j < n; j++) {
        const REAL share = (1 - t[j]) * p[j] == neg ? (1 - t[j]) / largest : 0;
        grad[j] = loss >= 0 ? scale * (share - t[j]) : 0;
    }
    return loss < 0 ? 0 : loss;
}

KEEL_LOSS_OF_GROUPS(of)
#endif
