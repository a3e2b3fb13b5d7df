/* F-beta score: (1 + beta^2) precision recall / (beta^2 precision + recall), of one-hot targets or
 * several labels. Sums, for each class: true and false positives, false negatives, targets. */
#include "metrics/_fbeta.h"
#include <math.h>

enum { MICRO, MACRO, WEIGHTED };
enum { TRUE_POSITIVES, FALSE_POSITIVES, FALSE_NEGATIVES, TARGETS, COUNTS };
#define EPSILON 1e-7 /* Keras's backend.epsilon() */

static const keel_field fields[] = {
    KEEL_FLOAT(keel_fbeta, beta, "1.0", 1e-30, 1e30, "how much more recall counts than precision"),
    KEEL_FBETA_FIELDS,
    KEEL_METRIC_FIELDS,
    { 0 },
};

int64_t keel_fbeta_sums(const void *args, int64_t last)
{
    (void)args;
    return COUNTS * last;
}

void keel_fbeta_add(const keel_loss_call *c, int real, double *sum)
{
    const keel_fbeta *a = c->args;
    keel_dense d = { 0 };
    if (keel_target_check(KEEL_TARGET_ONE_HOT, "", c->prediction, c->target, &d) < 0) return;
    for (int64_t i = 0; i < c->rows; i++) {
        const double w = keel_element_weight(c, real, 1, i, 0);
        const int64_t first = i * d.last;
        double largest = keel_real_at(c->y_pred, real, first);
        for (int64_t j = 1; j < d.last; j++)
            largest = fmax(largest, keel_real_at(c->y_pred, real, first + j));
        for (int64_t j = 0; w != 0 && j < d.last; j++) {
            const double p = keel_real_at(c->y_pred, real, first + j),
                         t = keel_real_at(c->y_true, real, first + j);
            const bool positive = isnan(a->threshold) ? p >= largest && fabs(p) > 1e-9
                                                      : (float)p > (float)a->threshold;
            double *count = sum + j * COUNTS;
            count[positive ? TRUE_POSITIVES : FALSE_NEGATIVES] += w * t;
            if (positive) count[FALSE_POSITIVES] += w * (1 - t);
            count[TARGETS] += w * t;
        }
    }
}

static double score(const keel_fbeta *a, const double *count)
{
    const double tp = count[TRUE_POSITIVES], square = a->beta * a->beta;
    const double precision = tp / (tp + count[FALSE_POSITIVES] + EPSILON);
    const double recall = tp / (tp + count[FALSE_NEGATIVES] + EPSILON);
    return precision * recall / (square * precision + recall + EPSILON) * (1 + square);
}

double keel_fbeta_result(const void *args, const double *sum, int64_t n)
{
    const keel_fbeta *a = args;
    const int64_t classes = n / COUNTS;
    double all[COUNTS] = { 0 }, scores = 0;
    for (int64_t i = 0; i < n; i++) all[i % COUNTS] += sum[i];
    if (a->average < 0) return classes > 0 ? score(a, sum) : 0;
    if (a->average == MICRO) return score(a, all);
    for (int64_t j = 0; j < classes; j++) {
        const double *count = sum + j * COUNTS;
        scores +=
            score(a, count) *
            (a->average == MACRO ? 1 / (double)classes : count[TARGETS] / (all[TARGETS] + EPSILON));
    }
    return scores;
}

int64_t keel_fbeta_values(const void *args, int64_t n)
{
    return ((const keel_fbeta *)args)->average < 0 ? n / COUNTS : 1;
}

double keel_fbeta_value(const void *args, const double *sum, int64_t n, int64_t i)
{
    (void)n;
    return score(args, sum + i * COUNTS);
}

const keel_metric keel_metric_fbeta_score = {
    .type = {
        .name = "FBetaScore",
        .alias = "fbeta_score",
        .module = "keras.metrics",
        .help = "weighted harmonic mean of precision and recall",
        .args_size = sizeof(keel_fbeta),
        .fields = fields,
    },
    .direction = 1,
    KEEL_FBETA_METRIC,
};
