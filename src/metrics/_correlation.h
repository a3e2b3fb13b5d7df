/* What the correlation metrics are made of: moments of predictions and targets along the last axis.
 */
#ifndef KEEL_METRICS_CORRELATION_H
#define KEEL_METRICS_CORRELATION_H
#include "metrics/metric.h"

typedef struct keel_correlation {
    double mean_pred, mean_true, var_pred, var_true, covariance; /* biased, over n numbers */
} keel_correlation;

keel_correlation keel_correlation_f32(const float *p, const float *t, int64_t n);
keel_correlation keel_correlation_f64(const double *p, const double *t, int64_t n);

/* The fields of both metrics. */
extern const keel_field keel_correlation_fields[];

/* keel_metric.of: the sum over elements of OF(moments), a function that the file has. */
#define KEEL_SUM_OF_CORRELATIONS(of, OF)                                                           \
    static double REAL_(of)(keel_elements * e)                                                     \
    {                                                                                              \
        const REAL *p = e->y_pred, *t = e->y_true;                                                 \
        double sum = 0;                                                                            \
        for (int64_t k = 0; k < e->count; k++, p += e->last, t += e->last) {                       \
            const keel_correlation c = REAL_(keel_correlation)(p, t, e->last);                     \
            sum += OF(&c);                                                                         \
        }                                                                                          \
        return sum;                                                                                \
    }

#endif
