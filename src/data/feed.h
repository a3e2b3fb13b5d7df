/* The feed: the one scheduler that turns a dataset into global steps. Nobody else asks for data.
 *
 * Rows are read by a pool of threads straight into preallocated slots, ahead of the step that
 * needs them and bounded by the number of slots; steps come out in order. Where rows can be read
 * by index, step s of epoch e is arithmetic, so the order does not depend on threads and a step can
 * be asked for again. What ends how (see keel_end_of_data):
 *
 *                steps_per_epoch 0         smaller than the data     larger than the data
 *   keep         all rows, short tail      goes on; short tails      ends early, said so
 *   drop         full batches only         goes on; full only        ends early, said so
 *   carry        leftovers open the next   goes on, always full      ends early, said so
 *   wrap         filled from the start     goes on, always full      goes round
 *   error        refused if a tail exists  refused if it is reached  ends early, said so */
#ifndef KEEL_DATA_FEED_H
#define KEEL_DATA_FEED_H
#include "base/error.h"
#include "keel/dataset.h"
#include "tensor/host_op.h"
#include <stdbool.h>

/* A field that is made of another one, once for each row, where rows are read. */
typedef struct keel_feed_made {
    int of; /* the field of the dataset, in the type that `want` says */
    keel_host_op op;
    const void *args; /* borrowed until the feed is destroyed */
    keel_dtype dtype;
    keel_shape shape;
} keel_feed_made;

typedef struct keel_feed_options {
    keel_dtype real; /* of floats in a batch: float32 or float64 */
    /* Of each field of the dataset: the type that it has in a batch; borrowed until the feed is
     * made. NULL: floats and weights become `real`, all else stays what it is. */
    const keel_dtype *want;
    const keel_feed_made *made; /* [n_made]; borrowed until the feed is made */
    int n_made;
    uint64_t unwanted;  /* bit i: field i of the dataset is not read */
    int64_t batch_size; /* 0: as the source yields (streams); refused for rows */
    bool shuffle;       /* rows: all of them; sequence: the order of its batches; generator: no */
    uint64_t seed;
    keel_end_of_data end;
    int64_t steps_per_epoch; /* 0: an epoch is the data */
    int64_t first_epoch;     /* the first that will be asked for: with carry nothing is left over
                                from the epochs before it */
    int64_t epochs;          /* the last that will be asked for, plus 1; 0: not known (nothing is
                                read ahead of the epoch that was begun) */
    int slots;               /* 0: 3 */
    int threads;             /* 0: as many as help; -1: none, reading happens in keel_feed_next */
    const double *class_weight; /* by label of the one target, multiplied into the weights of rows;
                                   borrowed; NULL: none */
    int64_t class_weight_count; /* a label that is not in it weighs 1 */
    bool wants_weight;          /* give weights even where all are one */
    bool leaves_rows;           /* rows in memory may be left to keel_feed_read */
    const int64_t *bucket;      /* [bucket_count] lengths that rows are padded to, ascending; NULL:
                                   the longest of the batch */
    int64_t bucket_count;
} keel_feed_options;

typedef struct keel_feed keel_feed;

typedef struct keel_batch {
    const void *field[KEEL_FIELDS_MAX]; /* of the feed's fields; NULL: not wanted */
    int n_field;
    const keel_data_field *spec; /* [n_field] what they are */
    int64_t rows;
    int64_t duplicates; /* how many of the rows (the last ones) `wrap` took a second time */
    uint64_t first_row; /* rows of this epoch before this batch: the key for chance */
    double weight_sum;  /* of the first field of weights; the rows where there is none */
    uint32_t epoch;
    int64_t step; /* of the epoch */
    int slot;
    const keel_feed *unread; /* the rows are still to be read; NULL: they are there */
} keel_batch;

/* The field of that role, counted from 0 in the order of the feed's fields; NULL: there is none. */
const void *keel_batch_field(const keel_batch *b, keel_data_role role, int nth);

/* Everything is allocated and every contradiction refused here. The dataset must outlive the feed.
 * KEEL_EDATA: the data cannot serve what the options ask. */
keel_status keel_feed_create(keel_feed **out, const keel_dataset *dataset,
                             const keel_feed_options *options);
void keel_feed_destroy(keel_feed *f); /* waits for running reads and callbacks; NULL is fine */

/* The fields of a batch: those of the dataset, with the types that they have here, behind them
 * those that are made of others, and "sample_weight" where rows get weights that the dataset has
 * not. */
int keel_feed_field_count(const keel_feed *f);
const keel_data_field *keel_feed_field(const keel_feed *f, int i);

int64_t
keel_feed_steps(const keel_feed *f); /* of the epoch begun (before: the first); -1: not known */
int64_t keel_feed_rows(const keel_feed *f);     /* of that epoch; -1: not known */
int64_t keel_feed_max_rows(const keel_feed *f); /* no batch has more */

/* Every row count that a step can have and that can be known ahead, largest first, at most `max`;
 * returns how many. Where *complete (may be NULL) becomes false, other counts up to
 * keel_feed_max_rows may come. */
int keel_feed_row_counts(const keel_feed *f, int64_t *counts, int max, bool *complete);

/* One line that the user should see ("ends early", "left out"), or NULL. */
const char *keel_feed_note(const keel_feed *f);

/* Go to the beginning of an epoch, counted from 0. In order it is free; any other epoch of an
 * indexed source costs the rows that were read ahead. KEEL_EDATA: a source that cannot begin again
 * is used up. All batches must have been released. */
keel_status keel_feed_begin_epoch(keel_feed *f, uint32_t epoch);

/* Go to a step of an epoch, to resume a run: keel_feed_next gives that step. Free for rows by
 * index; a stream is read up to it from the begin of its pass. KEEL_EARG: the epoch has fewer
 * steps; KEEL_EUNSUP: a stream whose epochs do not begin with a pass (steps_per_epoch, carry). */
keel_status keel_feed_seek(keel_feed *f, uint32_t epoch, int64_t step);

/* The next step of the epoch. KEEL_END: the epoch is over; < 0: the first failure in the order of
 * rows, naming source, row, file and stage; the same step is tried again by the next call. One
 * thread at a time. The batch is valid until it is released; at most slots - 1 may be held. */
keel_status keel_feed_next(keel_feed *f, keel_batch *out);
void keel_feed_release(keel_feed *f, const keel_batch *b);

/* Where a batch came with its rows unread (leaves_rows): read rows [from, to) of it. Cannot fail.
 * Any thread, at the same time as others that read other rows: so each worker fetches its own, into
 * its own cache. Does nothing to a batch that is read. */
void keel_feed_read(const keel_batch *b, int64_t from, int64_t to);

/* A failed step never happened: give back the batch that was taken last so that keel_feed_next
 * gives the same rows again. */
void keel_feed_retry(keel_feed *f, const keel_batch *b);

int64_t keel_feed_bytes(const keel_feed *f);       /* memory of all slots */
double keel_feed_wait_seconds(const keel_feed *f); /* that keel_feed_next waited, since create */

#endif
