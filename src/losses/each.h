/* Losses that are the mean, over the last axis, of a function of one prediction and its target.
 * Such a file writes
 *
 *     static REAL REAL_(at)(const args_t *a, REAL p, REAL t, REAL *slope)
 *
 * which returns the loss and sets its slope by p, and then KEEL_LOSS_OF_EACH(of). */
#ifndef KEEL_LOSSES_EACH_H
#define KEEL_LOSSES_EACH_H
#include "losses/loss.h"
#include <tgmath.h>

#define KEEL_LOSS_OF_EACH(of)                                                                      \
    static double REAL_(of)(keel_elements * e)                                                     \
    {                                                                                              \
        const REAL *p = e->y_pred, *t = e->y_true, scale = (REAL)(e->scale / (double)e->last);     \
        REAL *grad = e->grad;                                                                      \
        double sum = 0;                                                                            \
        for (int64_t j = 0; j < e->count * e->last; j++) {                                         \
            REAL slope = 0;                                                                        \
            sum += (double)REAL_(at)(e->args, p[j], t[j], &slope);                                 \
            if (grad) grad[j] = scale * slope;                                                     \
        }                                                                                          \
        return sum / (double)e->last;                                                              \
    }

/* Losses of all numbers along the last axis: a file writes
 *
 *     static REAL REAL_(one)(const args_t *a, const REAL *p, const REAL *t, int64_t n, REAL scale,
 *                            REAL *grad)
 *
 * which returns the loss and, unless grad is NULL, sets it; and then KEEL_LOSS_OF_GROUPS(of). */
#define KEEL_LOSS_OF_GROUPS(of)                                                                    \
    static double REAL_(of)(keel_elements * e)                                                     \
    {                                                                                              \
        const REAL *p = e->y_pred, *t = e->y_true, scale = (REAL)e->scale;                         \
        REAL *grad = e->grad;                                                                      \
        double sum = 0;                                                                            \
        for (int64_t k = 0; k < e->count; k++, p += e->last, t += e->last) {                       \
            sum += (double)REAL_(one)(e->args, p, t, e->last, scale, grad);                        \
            if (grad) grad += e->last;                                                             \
        }                                                                                          \
        return sum;                                                                                \
    }

#endif
