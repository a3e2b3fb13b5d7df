/* One global step: forward and backward on every lane, reduce, the commit point, update. */
#ifndef KEEL_TRAIN_STEP_H
#define KEEL_TRAIN_STEP_H
#include "data/feed.h"
#include "train/trainer.h"

/* Running means of an epoch, weighted by the rows of each step, as in Keras's logs. */
typedef struct keel_tally {
    double loss, rows;             /* sum of step loss * rows */
    double each[KEEL_OUTPUTS_MAX]; /* the same for each of several losses */
    double *metric;                /* [n_sum] of all metrics, by keel_scored_metric.first */
    int64_t n_sum;
} keel_tally;

/* Room for the metrics of `s`. On failure there is nothing to free. */
keel_status keel_tally_create(keel_tally *t, const keel_scored *s);
void keel_tally_clear(keel_tally *t); /* before an epoch */
void keel_tally_free(keel_tally *t);

/* Train on a batch. After a failure, weights, moments, state and `tally` are unchanged.
 * KEEL_ENUMERIC: a number is not finite; the text names step, device and row, or weight. */
keel_status keel_train_step(keel_trainer *t, const keel_batch *b, uint64_t seed, keel_tally *tally);

/* Compute the regularisers' part of the loss. Call it before test steps if weights have changed. */
void keel_test_begin(keel_trainer *t);

/* Forward, loss and metrics. */
keel_status keel_test_step(keel_trainer *t, const keel_batch *b, keel_tally *tally);

/* Forward; out[i], unless NULL, receives the rows of output i. */
keel_status keel_predict_step(keel_trainer *t, const keel_batch *b, void *const *out);

/* Fill logs->value with the current means, in the order of keel_scored_names. */
void keel_tally_logs(const keel_scored *s, const keel_tally *tally, keel_logs *logs);

#endif
