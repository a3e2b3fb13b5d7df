/* Categorical generalized cross-entropy (Zhang and Sabuncu 2018): l = (1 - p_y^q) / q for the label
 * y, over the last axis: between the categorical cross-entropy (q to 0) and the mean absolute error
 * (q of 1), so that labels which are wrong do less harm. */
#ifndef REAL
#include "losses/crossentropy.h"
#include "losses/each.h"

typedef keel_generalized_crossentropy args_t;

static const keel_field fields[] = {
    KEEL_LOSS_FIELDS(args_t),
    KEEL_FLOAT(args_t, q, "0.5", 1e-30, 1, "0 to 1: how little labels that look wrong count"),
    { 0 },
};

#define REAL_FILE "losses/categorical_generalized_cross_entropy.c"
#include "ops/real.h"

const keel_loss keel_loss_categorical_generalized_cross_entropy = {
    .type = {
        .name = "CategoricalGeneralizedCrossEntropy",
        .module = "keras.losses",
        .help = "cross-entropy of labels of which some are wrong",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .reduction_offset = offsetof(args_t, reduction),
    .target = KEEL_TARGET_LABEL,
    .of = REALS(of),
};

#else
static double REAL_(of)(keel_elements *e)
{
    const REAL q = (REAL)((const args_t *)e->args)->q, scale = (REAL)e->scale, *p = e->y_pred;
    REAL *grad = e->grad;
    double sum = 0;
    for (int64_t k = 0; k < e->count; k++, p += e->last) {
        const double label = keel_label_at(e->y_true, e->label_dtype, e->first + k);
        if (e->weightless) continue;
        for (int64_t j = 0; grad && j < e->last; j++) grad[j] = 0;
        if (!(label > -1 && label < (double)e->last)) {
            keel_label_refuse(label, e->row, e->last);
            return sum;
        }
        const int64_t y = (int64_t)label; /* as Keras: toward zero */
        sum += (double)((1 - pow(p[y], q)) / q);
        if (grad) grad[y] = -scale * pow(p[y], q - 1);
        if (grad) grad += e->last;
    }
    return sum;
}
#endif
