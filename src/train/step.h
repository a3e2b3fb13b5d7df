/* One global step: forward and backward on every lane, reduce, the commit point, update. */
#ifndef KEEL_TRAIN_STEP_H
#define KEEL_TRAIN_STEP_H
#include "data/feed.h"
#include "train/tally.h"
#include "train/trainer.h"

/* Train on a batch. KEEL_END: processes share the steps, and one of them stops before this one.
 * After a failure, weights, moments, state and `tally` are unchanged. KEEL_ENUMERIC: a number is
 * not finite; the text names step, device and row, or weight. */
keel_status keel_train_step(keel_trainer *t, const keel_batch *b, uint64_t seed, keel_tally *tally);

/* After a step of such a program whose outputs can be read: the rows of output k that this process
 * has, in their places. */
void keel_trainer_output(const keel_trainer *t, const keel_scored *s, int k, void *out);

/* Before a step: the batch that comes after it, whose rows go to devices meanwhile, if the feed has
 * it already. Without devices, nothing. */
void keel_trainer_look_ahead(keel_trainer *t, keel_feed *f);

/* Compute the regularisers' part of the loss. Call it before test steps if weights have changed. */
void keel_test_begin(keel_trainer *t);

/* Forward, loss and metrics. KEEL_END as above, here and in the next two. */
keel_status keel_test_step(keel_trainer *t, const keel_batch *b, keel_tally *tally);

/* The test program, and nothing else. */
keel_status keel_forward_step(keel_trainer *t, const keel_batch *b, uint64_t seed);

/* Forward; out[i], unless NULL, receives the rows of output i; without `all` only those of this
 * process, in their places. */
keel_status keel_predict_step(keel_trainer *t, const keel_batch *b, void *const *out, bool all);

#endif
