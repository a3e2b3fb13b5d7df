/* The arguments of masked_scores. */
#ifndef KEEL_OPS_MASKED_SCORES_H
#define KEEL_OPS_MASKED_SCORES_H
#include <stdbool.h>

typedef struct keel_masked_scores_args {
    bool causal; /* step t of T sees none after t */
    double less; /* what is taken from scores of what is not seen */
} keel_masked_scores_args;

#endif
