/* Running means of an epoch, weighted by the rows of each step, as in Keras's logs. */
#ifndef KEEL_TRAIN_TALLY_H
#define KEEL_TRAIN_TALLY_H
#include "train/scored.h"

typedef struct keel_tally {
    double loss, rows;             /* sum of step loss * rows */
    double each[KEEL_OUTPUTS_MAX]; /* [n_each] the same for each loss */
    int64_t n_each;
    double *metric; /* [n_sum] of all metrics, by keel_scored_metric.first */
    int64_t n_sum;
} keel_tally;

/* Room for the metrics of `s`. On failure there is nothing to free. */
keel_status keel_tally_create(keel_tally *t, const keel_scored *s);
void keel_tally_clear(keel_tally *t); /* before an epoch */
void keel_tally_free(keel_tally *t);
/* Adds a step of so many rows: its loss, and the sums of its metrics. */
void keel_tally_add(keel_tally *tally, const keel_scored *s, const keel_bound *bound, int64_t rows,
                    double loss, const keel_score *score);

/* Fill logs->value with the current means, in the order of keel_scored_names. */
void keel_tally_logs(const keel_scored *s, const keel_tally *tally, keel_logs *logs);

#endif
