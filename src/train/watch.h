/* A run of fit, evaluate or predict as its callbacks see it: the list of them, the moment that they
 * are told, and what they answered. */
#ifndef KEEL_TRAIN_WATCH_H
#define KEEL_TRAIN_WATCH_H
#include "base/text.h"
#include "train/gate.h"
#include "train/live.h"
#include "train/shown.h"

/* One line per function of keel_callback. */
#define KEEL_OCCASIONS(X)                                                                          \
    X(train_begin)                                                                                 \
    X(train_end)                                                                                   \
    X(epoch_begin)                                                                                 \
    X(epoch_end)                                                                                   \
    X(train_batch_begin)                                                                           \
    X(train_batch_end)                                                                             \
    X(test_begin)                                                                                  \
    X(test_end)                                                                                    \
    X(test_batch_begin)                                                                            \
    X(test_batch_end)                                                                              \
    X(predict_begin)                                                                               \
    X(predict_end)                                                                                 \
    X(predict_batch_begin)                                                                         \
    X(predict_batch_end)

typedef enum keel_occasion {
#define X(name) KEEL_ON_##name,
    KEEL_OCCASIONS(X)
#undef X
        KEEL_OCCASION_COUNT
} keel_occasion;

typedef struct keel_watch {
    int n;
    keel_callback *callback; /* [n] copies of the caller's */
    uint32_t heard;          /* bit e: some callback has a function for it */
    keel_moment at;
    keel_logs logs;                  /* what at.logs points to */
    keel_logs known;                 /* the names that the ends of epochs may have */
    char *val_name[KEEL_SCORES_MAX]; /* "val_loss", ...; NULL behind the last */
    keel_model_live live;
    keel_gate *gate;         /* of a fit, once it can be saved; else NULL */
    const keel_batch *batch; /* in train_batch_begin; else NULL */
    int input;               /* the field of the first input in it */
    int rank;                /* of this process */
    bool stop;               /* a function of training returned KEEL_END */
    bool stop_pass;          /* one of test or predict did */
    bool stop_at_nan; /* a step whose loss is not finite ends the training, without an error */
    /* Whether model and optimizer have exchanged the weights and their averages; NULL: never. */
    const bool *averaged;
    keel_text notes; /* what callbacks said, for the history's note */
    keel_shown shown;
} keel_watch;

/* Copy the list. rank: of this process; only process 0 writes files and shows lines. On failure
 * there is nothing to free. */
keel_status keel_watch_begin(keel_watch *r, keel_model *m, const keel_fit_options *o, bool fits,
                             int rank);
void keel_watch_end(keel_watch *r); /* also ends what keel_watch_go_live began */

/* Of what the callbacks will keep of the model. */
int64_t keel_watch_bytes(const keel_watch *r);
/* What Keel's own callbacks will read of the live model (KEEL_LIVE_*). */
int keel_watch_reads(const keel_watch *r);

/* The model is live from here on. */
void keel_watch_go_live(keel_watch *r, keel_trainer *t);

/* Put the names of an epoch's logs into r->logs, with NaN: those of training, then the same with
 * val_. */
keel_status keel_watch_name_logs(keel_watch *r, const keel_logs *names, bool validates);

/* The name of a validation's value in the logs of an epoch. NULL: it was not given at the begin. */
const char *keel_watch_val_name(const keel_watch *r, const char *name);

/* Call every callback that has a function for the event. */
keel_status keel_watch_tell(keel_watch *r, keel_occasion e);

/* The run has failed: callbacks take out of the live model what they have put there for a time. */
void keel_watch_failed(keel_watch *r);

/* Call every callback for the end of a batch, with its rows, if there is one that sees them. */
keel_status keel_watch_tell_rows(keel_watch *r, keel_occasion e);

static inline bool keel_watch_hears(const keel_watch *r, keel_occasion e)
{
    return r->heard >> e & 1;
}

/* A line for the user, shown when fit has returned; for callbacks of Keel's own. */
void keel_watch_say(keel_watch *r, const char *format, ...) KEEL_PRINTF(2, 3);

#endif
