/* Targets of the hinge losses: -1 or 1, or 0 or 1, where 0 stands for -1. Anything else fails the
 * step: Keras takes 0 for -1 only where a batch has no targets but 0 and 1, so that what a row
 * gives would depend on the rows beside it. */
#ifndef KEEL_LOSSES_HINGE_H
#define KEEL_LOSSES_HINGE_H
#include "losses/each.h"

static inline void keel_hinge_refuse(double target, int64_t row)
{
    keel_call_failed(NULL, keel_fail(KEEL_EDATA,
                                     "target %.9g at row %lld of the step: a hinge loss takes -1 "
                                     "or 1, or 0 or 1",
                                     target, (long long)row));
}

/* KEEL_LOSS_OF_EACH of checked targets. */
#define KEEL_LOSS_OF_MARGIN(of)                                                                    \
    KEEL_LOSS_OF_EACH(mean)                                                                        \
    static double REAL_(of)(keel_elements * e)                                                     \
    {                                                                                              \
        const REAL *t = e->y_true;                                                                 \
        for (int64_t j = 0; j < e->count * e->last; j++)                                           \
            if (t[j] != 0 && t[j] * t[j] != 1) {                                                   \
                keel_hinge_refuse((double)t[j], e->row);                                           \
                break;                                                                             \
            }                                                                                      \
        return REAL_(mean)(e);                                                                     \
    }

#endif
