/* Categorical focal cross-entropy (Lin et al. 2017): l = -sum_j alpha_j (1 - q_j)^gamma t_j log q_j
 * over the last axis; q is p over its sum, cut to [epsilon, 1 - epsilon]; no gradient flows where
 * it was cut. Of logits p is their softmax. Smoothing: t (1 - s) + s / classes. */
#ifndef REAL
#include "losses/crossentropy.h"
#include "losses/each.h"

typedef keel_categorical_focal args_t;

static const keel_field fields[] = {
    KEEL_LOSS_FIELDS(args_t),
    { .key = "alpha",
      .kind = KEEL_FIELD_REALS,
      .offset = offsetof(args_t, alpha),
      .dflt = "0.25",
      .max = 1e30,
      .count = 1,
      .help = "what all classes are multiplied by, or a number for each class" },
    KEEL_FLOAT(args_t, gamma, "2.0", 0, 1e30, "how little right predictions count"),
    KEEL_BOOL(args_t, from_logits, "false", "predictions are logits, not probabilities"),
    KEEL_FLOAT(args_t, label_smoothing, "0.0", 0, 1, "move targets toward one over the classes"),
    KEEL_SCORE_AXIS(args_t),
    { 0 },
};

static const char *along_last(const void *args)
{
    const args_t *a = args;
    return a->alpha.count > 1 ? "alpha" : a->label_smoothing > 0 ? "label_smoothing" : NULL;
}

static keel_status check(const void *args, const keel_spec *prediction, const keel_spec *target,
                         int64_t *elements)
{
    const args_t *a = args;
    const keel_shape *s = &prediction->shape;
    (void)target;
    (void)elements; /* those of the kind of target */
    if (a->alpha.count == 1 || a->alpha.count == s->dim[s->rank - 1]) return KEEL_OK;
    return keel_fail(KEEL_ESHAPE,
                     "CategoricalFocalCrossentropy: alpha has %d numbers for %lld classes",
                     a->alpha.count, (long long)s->dim[s->rank - 1]);
}

#define REAL_FILE "losses/categorical_focal_crossentropy.c"
#include "ops/real.h"

const keel_loss keel_loss_categorical_focal_crossentropy = {
    .type = {
        .name = "CategoricalFocalCrossentropy",
        .module = "keras.losses",
        .help = "categorical cross-entropy in which predictions that are right count little",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .reduction_offset = offsetof(args_t, reduction),
    .axis_offset = offsetof(args_t, axis),
    .along_last = along_last,
    .target = KEEL_TARGET_ONE_HOT,
    .check = check,
    .of = REALS(of),
};

#else
/* What q_j is a share of: the probability, or what softmax makes one of. */
static REAL REAL_(part)(const args_t *a, REAL x, REAL top)
{
    return a->from_logits ? exp(x - top) : x;
}

static REAL REAL_(one)(const args_t *a, const REAL *x, const REAL *t, int64_t n, REAL scale,
                       REAL *grad)
{
    const REAL low = (REAL)KEEL_EPSILON, high = (REAL)(1 - KEEL_EPSILON);
    const REAL keep = (REAL)(1 - a->label_smoothing), more = (REAL)(a->label_smoothing / (double)n);
    const REAL gamma = (REAL)a->gamma;
    REAL top = x[0], all = 0, loss = 0, along = 0; /* along: sum_j dl/dq_j q_j */
    for (int64_t j = 1; j < n; j++) top = fmax(top, x[j]);
    for (int64_t j = 0; j < n; j++) all += REAL_(part)(a, x[j], top);
    for (int64_t j = 0; j < n; j++) {
        const REAL q = REAL_(part)(a, x[j], top) / all, cut = q < low ? low : q > high ? high : q;
        const REAL alpha = (REAL)a->alpha.at[a->alpha.count == 1 ? 0 : j];
        const REAL tj = t[j] * keep + more, factor = alpha * pow(1 - cut, gamma);
        const REAL factor_by_q = gamma == 0 ? 0 : -alpha * gamma * pow(1 - cut, gamma - 1);
        const REAL slope = q == cut ? -tj * (factor / cut + factor_by_q * log(cut)) : 0;
        loss -= factor * tj * log(cut);
        along += slope * q;
        if (grad) grad[j] = slope;
    }
    for (int64_t j = 0; grad && j < n; j++) {
        const REAL q = REAL_(part)(a, x[j], top) / all;
        grad[j] = scale * (grad[j] - along) * (a->from_logits ? q : 1 / all);
    }
    return loss;
}

KEEL_LOSS_OF_GROUPS(of)
#endif
