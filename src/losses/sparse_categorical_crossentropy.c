/* Sparse categorical cross-entropy: l = -log p_y for the label y, over the last axis.
 *
 * For logits: log sum_k exp z_k - z_y; dl/dz = softmax(z) - onehot(y).
 * For probabilities, as Keras with TensorFlow: q = p clipped to [epsilon, 1 - epsilon], then the
 * softmax of log q, which is q / sum(q); clipped elements have no gradient.
 * Elements whose label is ignore_class are left out of the sum, the count and the weights.
 * A label outside the classes is an error of the data; nothing outside the row is read. */
#ifndef REAL
#include "losses/crossentropy.h"
#include "ops/all.h"
#include <tgmath.h>

typedef keel_sparse_crossentropy args_t;

static const keel_field fields[] = {
    KEEL_LOSS_FIELDS(args_t),
    KEEL_BOOL(args_t, from_logits, "false", "predictions are logits, not probabilities"),
    KEEL_INT(args_t, ignore_class, "null", 0, 0, "elements with this label are left out"),
    KEEL_SCORE_AXIS(args_t),
    { 0 },
};

static bool leaves_out(const void *args)
{
    return ((const args_t *)args)->ignore_class != KEEL_INT_NULL;
}

#define REAL_FILE "losses/sparse_categorical_crossentropy.c"
#include "ops/real.h"

const keel_loss keel_loss_sparse_categorical_crossentropy = {
    .type = {
        .name = "SparseCategoricalCrossentropy",
        .module = "keras.losses",
        .help = "cross-entropy for targets that are class numbers",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .reduction_offset = offsetof(args_t, reduction),
    .axis_offset = offsetof(args_t, axis),
    .target = KEEL_TARGET_LABEL,
    .of = REALS(of),
    .leaves_out = leaves_out,
    .logits_of = &keel_op_softmax,
    .from_logits_offset = offsetof(args_t, from_logits),
};

#else
static REAL REAL_(of_logits)(const REAL *z, int64_t y, int64_t n, REAL scale, REAL *grad)
{
    REAL top = z[0], sum = 0;
    for (int64_t j = 1; j < n; j++) top = z[j] > top ? z[j] : top;
    if (!grad) {
        for (int64_t j = 0; j < n; j++) sum += exp(z[j] - top);
        return log(sum) - (z[y] - top);
    }
    for (int64_t j = 0; j < n; j++) sum += grad[j] = exp(z[j] - top);
    const REAL factor = scale / sum;
    for (int64_t j = 0; j < n; j++) grad[j] *= factor;
    grad[y] -= scale;
    return log(sum) - (z[y] - top);
}

static REAL REAL_(cut)(REAL p)
{
    const REAL low = (REAL)KEEL_EPSILON, high = (REAL)(1 - KEEL_EPSILON);
    return p < low ? low : p > high ? high : p;
}

static REAL REAL_(of_probabilities)(const REAL *p, int64_t y, int64_t n, REAL scale, REAL *grad)
{
    REAL sum = 0;
    for (int64_t j = 0; j < n; j++) sum += REAL_(cut)(p[j]);
    if (grad) {
        for (int64_t j = 0; j < n; j++) grad[j] = p[j] == REAL_(cut)(p[j]) ? scale / sum : 0;
        if (p[y] == REAL_(cut)(p[y])) grad[y] -= scale / p[y];
    }
    return log(sum) - log(REAL_(cut)(p[y]));
}

static double REAL_(of)(keel_elements *e)
{
    const args_t *a = e->args;
    const REAL *p = e->y_pred, scale = (REAL)e->scale;
    const int64_t n = e->last;
    REAL *grad = e->grad;
    double sum = 0;
    bool failed = false;
    for (int64_t k = 0; k < e->count; k++, p += n) {
        const double label = keel_label_at(e->y_true, e->label_dtype, e->first + k);
        const bool ignored = label == (double)a->ignore_class; /* null equals no label */
        const bool inside = label > -1 && label < (double)n;
        e->left_out += ignored;
        if (e->weightless) continue;
        if (!ignored && !inside && !failed) {
            keel_label_refuse(label, e->row, n);
            failed = true;
        }
        if (ignored || !inside) {
            for (int64_t j = 0; grad && j < n; j++) grad[j] = 0;
        } else {
            const int64_t y = (int64_t)label; /* truncated toward zero, as in Keras */
            sum += (double)(a->from_logits ? REAL_(of_logits)(p, y, n, scale, grad)
                                           : REAL_(of_probabilities)(p, y, n, scale, grad));
        }
        if (grad) grad += n;
    }
    return sum;
}
#endif
