/* A loss that is one number for a batch, computed from sums over all of its rows: a ratio of two,
 * an overlap, a coefficient of determination. A program of ops gives the terms of each row
 * (losses/values.h), whose totals over the step are there before the loss is computed; the loss is
 * a short list of steps from these totals. No file of Keras has it: the package for Python writes
 * it for functions of the caller's. */
#ifndef KEEL_LOSSES_TOTALS_H
#define KEEL_LOSSES_TOTALS_H
#include "losses/values.h"

#define KEEL_TOTALS "KeelTotals"

typedef struct keel_totals_args {
    keel_values_args terms; /* its reduction, and the program of the terms */
    json_t *total;
} keel_totals_args;

extern const keel_loss keel_loss_totals;

/* The loss from `n` totals over `rows` rows, and how it changes with each: slope [n], overwritten;
 * NULL: not wanted. KEEL_EARG: `total` is no list of steps that end in one number. */
keel_status keel_totals_of(const json_t *total, const double *totals, int64_t n, int64_t rows,
                           double *loss, double *slope);

#endif
