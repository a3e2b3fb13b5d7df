/* Categorical cross-entropy: l = -sum_j t_j log p_j over the last axis.
 *
 * For logits: sum_j t_j (log sum_k exp z_k - z_j); dl/dz = softmax(z) - t. TensorFlow's kernel has
 * this gradient also for targets that do not sum to one, so Keras trains with it.
 * For probabilities: p is divided by its sum, then clipped to [epsilon, 1 - epsilon]; clipped
 * elements have no gradient. Label smoothing: t (1 - s) + s / classes. */
#ifndef REAL
#include "losses/crossentropy.h"
#include "ops/all.h"
#include <tgmath.h>

typedef keel_crossentropy args_t;

static const keel_field fields[] = {
    KEEL_LOSS_FIELDS(args_t),
    KEEL_BOOL(args_t, from_logits, "false", "predictions are logits, not probabilities"),
    KEEL_FLOAT(args_t, label_smoothing, "0.0", 0, 1, "moves targets toward 1 / classes"),
    KEEL_SCORE_AXIS(args_t),
    { 0 },
};

static const char *along_last(const void *args)
{
    return ((const args_t *)args)->label_smoothing > 0 ? "label_smoothing" : NULL;
}

#define REAL_FILE "losses/categorical_crossentropy.c"
#include "ops/real.h"

const keel_loss keel_loss_categorical_crossentropy = {
    .type = {
        .name = "CategoricalCrossentropy",
        .alias = "cce",
        .module = "keras.losses",
        .help = "cross-entropy for one-hot targets",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .reduction_offset = offsetof(args_t, reduction),
    .axis_offset = offsetof(args_t, axis),
    .along_last = along_last,
    .target = KEEL_TARGET_ONE_HOT,
    .of = REALS(of),
    .logits_of = &keel_op_softmax,
    .from_logits_offset = offsetof(args_t, from_logits),
};

#else
typedef struct REAL_(targets_t) { /* smoothed target: t_j * keep + share */
    const REAL *t;
    REAL keep, share;
} REAL_(targets_t);

static REAL REAL_(target)(const REAL_(targets_t) * t, int64_t j)
{
    return t->t[j] * t->keep + t->share;
}

static double REAL_(of_logits)(const REAL *z, const REAL_(targets_t) * t, int64_t n, REAL scale,
                               REAL *grad)
{
    REAL top = z[0], sum = 0;
    double loss = 0;
    for (int64_t j = 1; j < n; j++) top = z[j] > top ? z[j] : top;
    for (int64_t j = 0; j < n; j++) sum += exp(z[j] - top);
    const REAL log_sum = log(sum);
    for (int64_t j = 0; j < n; j++) {
        const REAL tj = REAL_(target)(t, j);
        loss += (double)(tj * (log_sum - (z[j] - top)));
        if (grad) grad[j] = scale * (exp(z[j] - top) / sum - tj);
    }
    return loss;
}

static double REAL_(of_probabilities)(const REAL *p, const REAL_(targets_t) * t, int64_t n,
                                      REAL scale, REAL *grad)
{
    const REAL low = (REAL)KEEL_EPSILON, high = (REAL)(1 - KEEL_EPSILON);
    REAL sum = 0;
    double loss = 0, along = 0; /* along: sum_j dl/dq_j q_j, for q = p / sum(p) */
    for (int64_t j = 0; j < n; j++) sum += p[j];
    for (int64_t j = 0; j < n; j++) {
        const REAL q = p[j] / sum, cut = q < low ? low : q > high ? high : q;
        const REAL tj = REAL_(target)(t, j), slope = q == cut ? -tj / cut : 0;
        loss -= (double)(tj * log(cut));
        along += (double)(slope * q);
        if (grad) grad[j] = slope;
    }
    if (grad)
        for (int64_t j = 0; j < n; j++) grad[j] = scale * (grad[j] - (REAL)along) / sum;
    return loss;
}

static double REAL_(of)(keel_elements *e)
{
    const args_t *a = e->args;
    const REAL *p = e->y_pred, scale = (REAL)e->scale;
    REAL *grad = e->grad;
    REAL_(targets_t)
    t = { e->y_true, (REAL)(1 - a->label_smoothing), (REAL)(a->label_smoothing / (double)e->last) };
    double sum = 0;
    for (int64_t k = 0; k < e->count; k++, p += e->last, t.t += e->last) {
        sum += a->from_logits ? REAL_(of_logits)(p, &t, e->last, scale, grad)
                              : REAL_(of_probabilities)(p, &t, e->last, scale, grad);
        if (grad) grad += e->last;
    }
    return sum;
}
#endif
