/* Batch renormalization: y = gamma (xhat r + d) + beta, where r and d are constants to gradients.
 * r is the batch's deviation over the moving one, d the distance of the batch's mean from the
 * moving one in moving deviations. */
#ifndef KEEL_OPS_BATCH_NORM_H
#define KEEL_OPS_BATCH_NORM_H
#include <math.h>
#include <stdbool.h>

typedef struct keel_batch_renorm {
    bool on;
    double momentum; /* of the two statistics that correct */
    double r_min, r_max, d_max;
} keel_batch_renorm;

typedef struct keel_correction {
    double r, d;
} keel_correction;

/* mean, invstd: the batch's; renorm_mean, renorm_stddev: the moving ones. */
static inline keel_correction keel_correct(const keel_batch_renorm *a, double epsilon, double mean,
                                           double invstd, double renorm_mean, double renorm_stddev)
{
    const double deviation = fmax(renorm_stddev, sqrt(epsilon));
    const double r = 1 / invstd / deviation, d = (mean - renorm_mean) / deviation;
    return (keel_correction){ fmin(fmax(r, a->r_min), a->r_max),
                              fmin(fmax(d, -a->d_max), a->d_max) };
}

#endif
