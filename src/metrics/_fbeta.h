/* The F-beta score, of which F1 is one: see fbeta_score.c. */
#ifndef KEEL_METRICS_FBETA_H
#define KEEL_METRICS_FBETA_H
#include "metrics/metric.h"

typedef struct keel_fbeta {
    int average;            /* "micro|macro|weighted"; -1: a score for each class */
    double beta, threshold; /* threshold NAN: the largest prediction is the positive one */
} keel_fbeta;

#define KEEL_FBETA_FIELDS                                                                          \
    { .key = "average",                                                                            \
      .kind = KEEL_FIELD_CHOICE,                                                                   \
      .offset = offsetof(keel_fbeta, average),                                                     \
      .dflt = "null",                                                                              \
      .choices = "micro|macro|weighted",                                                           \
      .help = "of all classes: their counts, their scores, or their scores by targets; "           \
              "null: a number for each" },                                                         \
    {                                                                                              \
        .key = "threshold", .kind = KEEL_FIELD_FLOAT, .offset = offsetof(keel_fbeta, threshold),   \
        .dflt = "null", .min = 1e-30, .max = 1,                                                    \
        .help = "a prediction above it counts as positive (default: the largest does)"             \
    }

int64_t keel_fbeta_sums(const void *args, int64_t last);
void keel_fbeta_add(const keel_loss_call *c, int real, double *sum);
double keel_fbeta_result(const void *args, const double *sum, int64_t n);
int64_t keel_fbeta_values(const void *args, int64_t n);
double keel_fbeta_value(const void *args, const double *sum, int64_t n, int64_t i);

#define KEEL_FBETA_METRIC                                                                          \
    .target = KEEL_TARGET_ONE_HOT, .one_dim = true, .unmasked = true, .sums = keel_fbeta_sums,     \
    .add = keel_fbeta_add, .result = keel_fbeta_result, .values = keel_fbeta_values,               \
    .value = keel_fbeta_value

#endif
