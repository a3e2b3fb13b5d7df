/* What losses of the overlap of predictions and targets share (Dice, Tversky): for each group of
 * numbers 1 - twice I / (inside I + of_true T + of_pred P + epsilon), where I is the sum of t p, T
 * that of t and P that of p. `axis` names the dims that are summed; without it, or if dim 0 is
 * among them, the sums are over all rows of the step. */
#ifndef KEEL_LOSSES_OVERLAP_H
#define KEEL_LOSSES_OVERLAP_H
#include "losses/loss.h"

typedef struct keel_overlap {
    int reduction;
    keel_ints axis;
    double alpha, beta;                     /* Tversky's */
    double twice, inside, of_true, of_pred; /* of the formula above */
} keel_overlap;

#define KEEL_OVERLAP_AXIS                                                                          \
    KEEL_INTS(keel_overlap, axis, 0, "null", -KEEL_RANK_MAX, KEEL_RANK_MAX,                        \
              "dims that are summed over, 0 for the rows (default: all)")

extern const keel_loss_whole keel_overlap_whole;
keel_status keel_overlap_check(const void *args, const keel_spec *prediction,
                               const keel_spec *target, int64_t *elements);

#endif
