/* Binary cross-entropy: l = mean over the last axis of -(t log p + (1 - t) log(1 - p)).
 *
 * For logits z: max(z, 0) - z t + log(1 + exp(-|z|)), finite for every z; dl/dz = sigmoid(z) - t.
 * For probabilities: p is clipped to [epsilon, 1 - epsilon]; clipped elements have no gradient.
 * Label smoothing: t (1 - s) + s / 2. All as in Keras with TensorFlow. */
#ifndef REAL
#include "losses/crossentropy.h"
#include "ops/all.h"
#include <tgmath.h>

typedef keel_crossentropy args_t;

static const keel_field fields[] = {
    KEEL_LOSS_FIELDS(args_t),
    KEEL_BOOL(args_t, from_logits, "false", "predictions are logits, not probabilities"),
    KEEL_FLOAT(args_t, label_smoothing, "0.0", 0, 1, "moves targets toward one half"),
    KEEL_REFUSE("axis", "-1", "the mean is taken over the last axis"),
    { 0 },
};

static void use_logits(void *args)
{
    ((args_t *)args)->from_logits = true;
}

static bool has_logits(const void *args)
{
    return ((const args_t *)args)->from_logits;
}

#define REAL_FILE "losses/binary_crossentropy.c"
#include "ops/real.h"

const keel_loss keel_loss_binary_crossentropy = {
    .type = {
        .name = "BinaryCrossentropy",
        .alias = "bce|BCE",
        .module = "keras.losses",
        .help = "cross-entropy for independent binary targets",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .reduction_offset = offsetof(args_t, reduction),
    .of = REALS(of),
    .logits_of = &keel_op_sigmoid,
    .use_logits = use_logits,
    .has_logits = has_logits,
};

#else
static REAL REAL_(of_logit)(REAL z, REAL t, REAL *slope)
{
    const REAL e = exp(-fabs(z)), big = 1 / (1 + e); /* sigmoid(|z|) */
    *slope = (z >= 0 ? big : e * big) - t;
    return (z > 0 ? z : 0) - z * t + log1p(e);
}

static REAL REAL_(of_probability)(REAL p, REAL t, REAL *slope)
{
    const REAL low = (REAL)KEEL_EPSILON, high = (REAL)(1 - KEEL_EPSILON);
    const REAL q = p < low ? low : p > high ? high : p;
    *slope = q == p ? (1 - t) / (1 - q) - t / q : 0;
    return -(t * log(q) + (1 - t) * log(1 - q));
}

static double REAL_(of)(keel_elements *e)
{
    const args_t *a = e->args;
    const REAL *p = e->y_pred, *t = e->y_true, scale = (REAL)(e->scale / (double)e->last);
    const REAL keep = (REAL)(1 - a->label_smoothing), half = (REAL)(a->label_smoothing / 2);
    REAL *grad = e->grad;
    double sum = 0;
    for (int64_t j = 0; j < e->count * e->last; j++) {
        const REAL tj = t[j] * keep + half;
        REAL slope = 0;
        sum += (double)(a->from_logits ? REAL_(of_logit)(p[j], tj, &slope)
                                       : REAL_(of_probability)(p[j], tj, &slope));
        if (grad) grad[j] = scale * slope;
    }
    return sum / (double)e->last;
}
#endif
