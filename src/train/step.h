/* One global step: forward and backward on every lane, reduce, the commit point, update. */
#ifndef KEEL_TRAIN_STEP_H
#define KEEL_TRAIN_STEP_H
#include "data/feed.h"
#include "train/trainer.h"

/* Running means of an epoch, by rows of the steps, as Keras logs them. */
typedef struct keel_tally {
    double loss, rows;             /* sum of step loss * rows */
    double each[KEEL_OUTPUTS_MAX]; /* the same of each loss, where there are several */
    double *metric;                /* [n_sum] of all metrics, by keel_scored_metric.first */
    int64_t n_sum;
} keel_tally;

/* Room for the metrics of `s`. On failure there is nothing to free. */
keel_status keel_tally_create(keel_tally *t, const keel_scored *s);
void keel_tally_clear(keel_tally *t); /* before an epoch */
void keel_tally_free(keel_tally *t);

/* Train on a batch. On failure (KEEL_ENUMERIC names step, device, rows or weight) weights, moments,
 * state and `tally` are as before. */
keel_status keel_train_step(keel_trainer *t, const keel_batch *b, uint64_t seed, keel_tally *tally);

/* Before test steps whenever the weights have moved: what the regularisers add to their loss. */
void keel_test_begin(keel_trainer *t);

/* Forward, loss and metrics. */
keel_status keel_test_step(keel_trainer *t, const keel_batch *b, keel_tally *tally);

/* Forward; the rows of output i go to out[i], where that is not NULL. */
keel_status keel_predict_step(keel_trainer *t, const keel_batch *b, void *const *out);

/* The values of the logs so far: logs->value, in the order of keel_scored_names. */
void keel_tally_logs(const keel_scored *s, const keel_tally *tally, keel_logs *logs);

#endif
