/* Shared by fit, evaluate and predict: options and their defaults, the feed, and the loop over the
 * steps of an evaluation. */
#ifndef KEEL_TRAIN_SESSION_H
#define KEEL_TRAIN_SESSION_H
#include "base/clock.h"
#include "data/feed.h"
#include "data/source.h"
#include "train/strategy.h"
#include "train/watch.h"
#include "train/step.h"

/* Check the caller's options (NULL: defaults) and copy them to a struct of this version's size. */
keel_status keel_session_options(keel_fit_options *out, const keel_fit_options *given);

/* Create a feed, of which each process reads its own rows, or process 0 a stream for all, in row
 * order (evaluate, predict, validation) or in training order. */
keel_status keel_session_feed(keel_feed **out, const keel_dataset *d, const keel_fit_options *o,
                              bool training, keel_dtype real, const keel_pairing *pairing,
                              keel_account *account, const keel_strategy *s);
/* The least memory of such a feed. */
keel_status keel_session_least(int64_t *out, const keel_dataset *d, const keel_fit_options *o,
                               bool training, keel_dtype real, const keel_pairing *pairing);

/* The work that a feed means for a trainer. If its rows have open dims, `epoch` is begun to see the
 * shapes of the first batch, which is returned to the feed; *out points into it. */
keel_status keel_session_work(keel_trainer_work *out, keel_feed *f, const keel_pairing *pairing,
                              int64_t epoch);

/* Store the trainer's program counts in o->counts; t NULL: none were made. */
void keel_session_count(const keel_fit_options *o, const keel_trainer *t);

/* Prepare the program for every row count that the feed knows in advance. */
keel_status keel_session_prepare(keel_scored *s, const keel_feed *f);

/* The loop over a pass that processes share: whether to ask for another step, which also tells the
 * others of r->stop_pass; and its end, after `s` of the feed or of a step. */
bool keel_session_goes_on(const keel_watch *r, keel_trainer *t);
keel_status keel_session_end_pass(keel_watch *r, keel_trainer *t, keel_status s);

/* Evaluate one pass of a feed, with its callbacks; r->logs gets the results, unless r->stop_pass.
 */
keel_status keel_session_test(keel_watch *r, keel_trainer *t, keel_feed *f, keel_tally *tally);

#endif
