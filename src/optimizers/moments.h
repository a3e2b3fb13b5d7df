/* The arguments of Adam's family, which has two moving averages of the gradient. */
#ifndef KEEL_OPTIMIZERS_MOMENTS_H
#define KEEL_OPTIMIZERS_MOMENTS_H
#include "optimizers/optimizer.h"

typedef struct keel_moments {
    keel_optimizer_common common;
    double beta_1, beta_2, epsilon;
} keel_moments;

/* second: help of beta_2; under: help of epsilon. */
#define KEEL_MOMENTS_FIELDS(args, second, under)                                                   \
    KEEL_FLOAT(args, beta_1, "0.9", 0, 1, "how much of the mean gradient is kept"),                \
        KEEL_FLOAT(args, beta_2, "0.999", 0, 1, second),                                           \
        KEEL_FLOAT(args, epsilon, "1e-7", 0, 1e30, under)

#endif
