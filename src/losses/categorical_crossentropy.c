/* Categorical cross-entropy: l = -sum_j t_j log p_j over the last axis.
 *
 * Of logits: sum_j t_j (log sum_k exp z_k - z_j); dl/dz = softmax(z) - t, which is TensorFlow's
 * gradient also where the targets do not sum to one (its kernel gives that, so Keras trains with
 * it). Of probabilities: p is divided by its sum, then cut to [epsilon, 1 - epsilon]; no gradient
 * flows where it was cut. Smoothing: t (1 - s) + s / classes. */
#ifndef REAL
#include "losses/crossentropy.h"
#include "ops/all.h"
#include <tgmath.h>

typedef keel_crossentropy args_t;

static const keel_field fields[] = {
    KEEL_LOSS_FIELDS(args_t),
    KEEL_BOOL(args_t, from_logits, "false", "predictions are logits, not probabilities"),
    KEEL_FLOAT(args_t, label_smoothing, "0.0", 0, 1, "move targets toward one over the classes"),
    KEEL_REFUSE("axis", "-1", "classes are the last axis"),
    { 0 },
};

static keel_status check(const void *args, const keel_spec *prediction, const keel_spec *target,
                         int64_t *elements)
{
    keel_dense d = { 0 };
    KEEL_TRY(
        keel_loss_check_reduction("CategoricalCrossentropy", ((const args_t *)args)->reduction));
    KEEL_TRY(keel_loss_dense("CategoricalCrossentropy", prediction, target, &d));
    if (!keel_shape_equal(&prediction->shape, &target->shape)) {
        char text[2][96];
        keel_shape_text(text[0], &prediction->shape);
        keel_shape_text(text[1], &target->shape);
        return keel_fail(KEEL_ESHAPE,
                         "CategoricalCrossentropy: one row of predictions is %s, of targets %s; "
                         "labels that are numbers want SparseCategoricalCrossentropy",
                         text[0], text[1]);
    }
    *elements = d.elements;
    return KEEL_OK;
}

static void use_logits(void *args)
{
    ((args_t *)args)->from_logits = true;
}

static bool has_logits(const void *args)
{
    return ((const args_t *)args)->from_logits;
}

#define REAL_FILE "losses/categorical_crossentropy.c"
#include "ops/real.h"

const keel_loss keel_loss_categorical_crossentropy = {
    .type = {
        .name = "CategoricalCrossentropy",
        .alias = "cce",
        .module = "keras.losses",
        .help = "cross-entropy of one-hot targets",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .reduction_offset = offsetof(args_t, reduction),
    .check = check,
    .run = REALS(run),
    .logits_of = &keel_op_softmax,
    .use_logits = use_logits,
    .has_logits = has_logits,
};

#else
typedef struct REAL_(targets_t) { /* t_j * keep + share */
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

static void REAL_(run)(const keel_loss_call *c)
{
    const args_t *a = c->args;
    const REAL *p = c->y_pred, *weight = c->weight;
    REAL *grad = c->grad;
    keel_dense d = { 0 };
    if (keel_loss_dense("CategoricalCrossentropy", c->prediction, c->target, &d) < 0) return;
    REAL_(targets_t)
    t = { c->y_true, (REAL)(1 - a->label_smoothing), (REAL)(a->label_smoothing / (double)d.last) };
    double total = 0, weights = 0;
    for (int64_t i = 0; i < c->rows; i++) {
        const double w = weight ? (double)weight[i] : 1;
        const REAL scale = (REAL)(c->seed * w);
        for (int64_t k = 0; k < d.elements; k++, p += d.last, t.t += d.last) {
            if (w == 0) {
                for (int64_t j = 0; grad && j < d.last; j++) grad[j] = 0;
            } else {
                total += w * (a->from_logits ? REAL_(of_logits)(p, &t, d.last, scale, grad)
                                             : REAL_(of_probabilities)(p, &t, d.last, scale, grad));
            }
            if (grad) grad += d.last;
        }
        weights += w * (double)d.elements;
    }
    c->sum[0] += total;
    c->sum[1] += (double)(c->rows * d.elements);
    c->sum[2] += weights;
}
#endif
