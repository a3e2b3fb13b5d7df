/* What fit, evaluate and predict share: options with their defaults, checks of data against the
 * model, and the loop over the steps of a feed. */
#ifndef KEEL_TRAIN_SESSION_H
#define KEEL_TRAIN_SESSION_H
#include "base/clock.h"
#include "data/feed.h"
#include "data/source.h"
#include "train/step.h"

/* The options of the caller (NULL: defaults), checked, in a struct of this version's size. */
keel_status keel_session_options(keel_fit_options *out, const keel_fit_options *given);

/* A feed in row order (evaluate, predict, validation) or in training order. */
keel_status keel_session_feed(keel_feed **out, const keel_dataset *d, const keel_fit_options *o,
                              bool training, keel_dtype real, const keel_pairing *pairing);

/* What a feed asks of a trainer. Where the dims of its rows are open, `epoch` is begun to look at
 * the first batch, which is given back; *out points into it. */
keel_status keel_session_work(keel_trainer_work *out, keel_feed *f, const keel_pairing *pairing,
                              int64_t epoch);

/* How many programs a trainer made and has; NULL: none yet. */
void keel_session_count(const keel_fit_options *o, const keel_trainer *t);

/* Prepare every row count that can be known. */
keel_status keel_session_prepare(keel_scored *s, const keel_feed *f);

/* One pass over a feed in evaluation; `progress` (may be NULL) is told after each step. KEEL_END:
 * its callback stopped the pass. */
keel_status keel_session_test(keel_trainer *t, keel_feed *f, const keel_fit_options *o,
                              keel_progress *progress, keel_tally *tally);

#endif
