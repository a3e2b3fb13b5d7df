/* The feed: the only scheduler that turns a dataset into global steps.
 *
 * A pool of threads reads rows straight into preallocated slots, ahead of the step that needs them
 * and at most one batch per slot. Steps come out in order. If rows can be read by index, the rows
 * of step s of epoch e are computed, so the order does not depend on threads and a step can be
 * repeated. What happens at the end of the data (see keel_end_of_data):
 *
 *                steps_per_epoch 0         smaller than the data     larger than the data
 *   keep         all rows, short tail      continues; short tails    ends early, with a note
 *   drop         full batches only         continues; full only      ends early, with a note
 *   carry        the rest opens the next   continues, always full    ends early, with a note
 *   wrap         filled from the start     continues, always full    begins again
 *   error        refused if a tail exists  refused if it is reached  ends early, with a note */
#ifndef KEEL_DATA_FEED_H
#define KEEL_DATA_FEED_H
#include "base/account.h"
#include "base/error.h"
#include "data/feed_shared.h"
#include "keel/dataset.h"
#include "tensor/host_op.h"
#include <stdbool.h>

/* A field that the reading thread computes from others, row by row. */
typedef struct keel_feed_made {
    /* [n_of] indices of the dataset's fields, in the type given by `want`; behind them, of fields
     * computed before this one. Where rows differ in length, its open dims are those of of[0]. */
    int of[KEEL_HOST_INS_MAX], n_of;
    keel_host_op op;
    const void *args; /* borrowed until the feed is destroyed */
    keel_dtype dtype;
    keel_shape shape;
} keel_feed_made;

/* Memory for the rows of batches that somebody else has: that of a device's host, say, from which
 * the device copies by itself. Rows that differ in length do not lie there. */
typedef struct keel_row_memory {
    void *(*take)(void *context, size_t bytes); /* all zero, aligned to 64; NULL: there is none
                                                   left, and the feed takes any other */
    void (*give)(void *context, void *at);
    void *context; /* outlives the feed */
} keel_row_memory;

typedef struct keel_feed_options {
    keel_dtype real; /* type of floats in a batch: float32 or float64 */
    /* The type in a batch of each field of the dataset; borrowed until keel_feed_create returns.
     * NULL: floats and weights become `real`, other types stay. */
    const keel_dtype *want;
    const keel_feed_made *made; /* [n_made]; borrowed until keel_feed_create returns */
    int n_made;
    uint64_t unwanted;  /* bit i: field i of the dataset is not read */
    int64_t batch_size; /* 0: as the source yields (streams only) */
    bool shuffle;       /* all rows; of a sequence, the order of its batches; no generator */
    uint64_t seed;
    keel_end_of_data end;
    int64_t steps_per_epoch; /* 0: an epoch is the data */
    /* steps_per_epoch smaller than the data: each epoch begins with the first row again; not of a
     * stream of one pass, and with `keep` only. */
    bool anew;
    int64_t first_epoch;        /* the first epoch that will be begun; with carry, no rows are left
                                   over from the epochs before it */
    bool untrained;             /* batches train nothing: errors call them batches, not steps */
    int64_t epochs;             /* the last epoch that will be begun, plus 1; 0: not known (then
                                   nothing is read ahead of the current epoch) */
    int slots;                  /* 0: chosen by the feed: 3, or more if that saves waits */
    int threads;                /* 0: chosen by the feed; -1: none, keel_feed_next reads */
    const double *class_weight; /* by label of the only target; a row's weight is multiplied by it;
                                   borrowed; NULL: none */
    int64_t class_weight_count; /* labels from this number on have weight 1 */
    bool wants_weight;          /* provide weights even if all are 1 */
    bool leaves_rows;           /* rows in memory may be left unread, for keel_feed_read */
    /* Of a step of so many rows, those that are wanted: the others need not be read. The answer is
     * always the same. NULL: all. */
    void (*part)(const void *context, int64_t rows, int64_t *first, int64_t *end);
    const void *part_context; /* borrowed */
    /* A stream is read by process 0 alone, and all call the same functions of the feed in the same
     * order. Copied; NULL: this process reads for itself. */
    const keel_feed_share *share;
    const int64_t *bucket; /* [bucket_count] lengths that rows are padded to, ascending; NULL:
                              to the longest row of the batch */
    int64_t bucket_count;
    const keel_input_watch *watch; /* borrowed until keel_feed_create returns; NULL: none */
    /* All buffers are taken from this account, which may serve several feeds; borrowed until the
     * feed is destroyed; NULL: nobody counts. */
    keel_account *account;
    keel_row_memory memory; /* by the thread that calls this feed; take NULL: any */
    /* Tells each decision about threads and slots in one line, from within keel_feed_next. */
    void (*on_decision)(void *context, const char *line);
    void *context;
} keel_feed_options;

typedef struct keel_feed keel_feed;

typedef struct keel_batch {
    const void *field[KEEL_FIELDS_MAX]; /* by the feed's fields; NULL: not read */
    int n_field;
    const keel_data_field *spec; /* [n_field] their names, roles, types and shapes */
    int64_t rows;
    int64_t duplicates; /* wrap: the number of rows, at the end, that this pass has twice */
    uint64_t first_row; /* rows of this epoch before this batch: keys all random numbers. Where a
                           pipeline makes the batches, as if each before it were full */
    int64_t first,
        end; /* the rows that were read, or may be by keel_feed_read; others are not there */
    double weight_sum; /* of their first field of weights; without one, the number of rows */
    uint32_t epoch;
    int64_t step;   /* number in the epoch, from 0 */
    bool untrained; /* as in the feed's options */
    int slot;
    uint64_t contents;       /* where it is not 0, all processes must have the same */
    const keel_feed *unread; /* rows must be read by keel_feed_read; NULL: they are read */
    const keel_feed *of;     /* has given it, and knows its rows by number; NULL: none does */
} keel_batch;

/* The nth field of a role, from 0, in the order of the feed's fields; NULL: none. */
const void *keel_batch_field(const keel_batch *b, keel_data_role role, int nth);

/* The weights of targets that have none of their own; NULL: none. */
const void *keel_batch_weights(const keel_batch *b);

enum { KEEL_BATCH_PLACE_MAX = 64 };

/* Where in its pass a batch is, for errors: "step 3 of epoch 1", or "batch 3" if it trains nothing.
 * Returns `out`. */
const char *keel_batch_place(const keel_batch *b, char out[KEEL_BATCH_PLACE_MAX]);

/* Allocates everything and checks all options. The dataset must outlive the feed. KEEL_EDATA: the
 * data cannot provide what the options request. */
keel_status keel_feed_create(keel_feed **out, const keel_dataset *dataset,
                             const keel_feed_options *options);
/* The least bytes that such a feed needs, and part of them, to read rows by number (NULL: not asked
 * for); KEEL_EDATA, KEEL_EARG as keel_feed_create. */
keel_status keel_feed_least(int64_t *out, int64_t *reading, const keel_dataset *dataset,
                            const keel_feed_options *options);
/* Before the first step: from now on the account of the feed has this limit, if it had a higher one
 * or none. Batches ahead are given up for it, all but two; what the feed then has and needs to read
 * is allowed in any case. Without an account, nothing. */
void keel_feed_limit(keel_feed *f, int64_t limit);
void keel_feed_destroy(keel_feed *f); /* waits for running reads and callbacks; NULL is allowed */

/* The fields of a batch, with their types in a batch: first those of the dataset, then those
 * computed from them, then "sample_weight" if rows get weights that the dataset lacks. */
int keel_feed_field_count(const keel_feed *f);
const keel_data_field *keel_feed_field(const keel_feed *f, int i);

int64_t keel_feed_steps(const keel_feed *f); /* of the current epoch, or the first; -1: not known */
int64_t keel_feed_rows(const keel_feed *f);  /* of that epoch; -1: not known */
int64_t keel_feed_max_rows(const keel_feed *f); /* of a batch */

/* The row counts of steps that are known in advance, largest first, at most `max` of them. Returns
 * their number. If *complete (may be NULL) becomes false, steps may also have other counts, up to
 * keel_feed_max_rows. */
int keel_feed_row_counts(const keel_feed *f, int64_t *counts, int max, bool *complete);

/* A note for the user ("ends early", "left out"), in one line, or NULL. */
const char *keel_feed_note(keel_feed *f);

/* Begin an epoch, counted from 0. The next epoch in order costs nothing; for any other, rows that
 * were read ahead are discarded. KEEL_EDATA: the source is used up and cannot begin again. All
 * batches must have been released. */
keel_status keel_feed_begin_epoch(keel_feed *f, uint32_t epoch);

/* Go to a step of an epoch, to resume a run: the next keel_feed_next gives that step. It costs
 * nothing for rows by index. A stream is read from the begin of its pass or, if its epochs depend
 * on those before them (a generator, steps_per_epoch, carry), from the begin of the run: it must
 * then give the rows that it gave that run. KEEL_EARG: the epoch has fewer steps. */
keel_status keel_feed_seek(keel_feed *f, uint32_t epoch, int64_t step);

/* The rows that keel_feed_seek will read again to come behind `rows` rows of an epoch, at most; -1:
 * not known. */
int64_t keel_feed_rows_before(const keel_feed *f, uint32_t epoch, int64_t rows);
int64_t keel_feed_rows_again(const keel_feed *f); /* those that were read again so far */

/* Read and discard an epoch, if later ones depend on it; else do nothing. */
keel_status keel_feed_pass_over(keel_feed *f, uint32_t epoch);

/* The next step of the epoch. KEEL_END: the epoch is over; < 0: the first failure in row order,
 * with source, row, file and stage in its text; the next call tries the same step again. One thread
 * at a time. The batch is valid until it is released; at most slots - 1 may be held. */
keel_status keel_feed_next(keel_feed *f, keel_batch *out);
void keel_feed_release(keel_feed *f, const keel_batch *b);

/* The batch that the next keel_feed_next will give, if it can be had without waiting: its rows may
 * be read already, but it is not held. False: it is not known yet, or there is none in this epoch.
 * It is valid until the next call for this feed, but for keel_feed_read and keel_feed_release. By
 * the thread that calls keel_feed_next. */
bool keel_feed_peek(keel_feed *f, keel_batch *out);

/* Read rows [from, to) of a batch that came unread (leaves_rows); of any other batch, do nothing.
 * Cannot fail. Threads may read different rows at the same time, so each worker brings its own rows
 * into its own cache. */
void keel_feed_read(const keel_batch *b, int64_t from, int64_t to);

/* What row i of the batch comes from, behind all stages, and its number there; NULL: not known. */
const struct keel_data_origin *keel_feed_row(const keel_batch *b, int64_t i, int64_t *index);

/* Return the batch that was taken last after a failed step: keel_feed_next gives the same rows
 * again. */
void keel_feed_retry(keel_feed *f, const keel_batch *b);

/* What the steps so far have taken of the budgets of stages, for a checkpoint; of a stream it is
 * empty, since that is read again. */
struct keel_ledger *keel_feed_ledger(keel_feed *f);

int64_t keel_feed_bytes(const keel_feed *f);       /* memory of all slots */
int64_t keel_feed_refused(const keel_feed *f);     /* of it, what options.memory had no room for; of
                                                      NULL, 0 */
double keel_feed_wait_seconds(const keel_feed *f); /* that keel_feed_next waited, in total */
struct keel_work;
const struct keel_work *keel_feed_work(const keel_feed *f); /* who worked on what: data/work.h */
int keel_feed_threads(const keel_feed *f);                  /* that read now */
int keel_feed_slots(const keel_feed *f);
bool keel_feed_is_stream(const keel_feed *f); /* of a pipeline, whose rows are taken in order */
const keel_account *keel_feed_account(const keel_feed *f); /* NULL: nobody counts */

#endif
