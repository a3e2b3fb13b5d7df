/* The input of a fit as it is shown: see keel/input.h. */
#ifndef KEEL_TRAIN_INPUT_H
#define KEEL_TRAIN_INPUT_H
#include "data/feed.h"
#include "data/work.h"
#include "keel/train.h"

/* Accounts of the feeds of a fit; together they hold at most the limit. */
typedef struct keel_input_accounts {
    keel_account training, validation;
} keel_input_accounts;

/* o->input_memory, or if it is 0 half of what the control groups leave free; 0: no limit.
 * KEEL_EARG: it is negative, or more than a control group allows. */
keel_status keel_input_limit(int64_t *out, int64_t asked);

/* Follows a feed from its first step on. */
typedef struct keel_input_follow {
    const keel_dataset *data;
    keel_input_stats now, base, recent, before; /* totals: now; when the input had settled; and of
                                             about the last 25 and 50 steps */
    double last;                                /* the end of the step before */
    int64_t next;                               /* step at which `recent` and `before` move on */
    double share;                               /* of the last steps: waiting */
    char late[80];                              /* the stage that they waited for; "": none */
    const char *report;
    double drawn; /* when the report was written */
    int64_t epochs;
    keel_status failed; /* of writing the report */
    keel_failure failure;
} keel_input_follow;

void keel_input_begin(keel_input_follow *w, const keel_dataset *d, const keel_feed *f,
                      const keel_fit_options *o, const keel_strategy *s);
/* The steps of an epoch begin: of the time since the last step only waiting for rows counts. */
void keel_input_epoch(keel_input_follow *w, const keel_feed *f, double now);
/* After a step and what callbacks did behind the one before it. */
void keel_input_step(keel_input_follow *w, const keel_feed *f, double now);
/* What is shown at the end, or now: since the input has settled, with remedies. */
void keel_input_sum(const keel_input_follow *w, keel_input_stats *out);
keel_status keel_input_end(keel_input_follow *w, const keel_feed *f, keel_input_stats *out);

/* Totals of a feed's work, without steps; those of a reader too. */
void keel_input_measure(keel_input_stats *in, const keel_work *w);

#endif
