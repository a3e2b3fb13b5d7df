/* Inside the feed: the ring of slots that both engines fill, and what differs between them.
 *
 * Batches are numbered in the order in which they are given (`seq`); batch seq lives in slot
 * seq % n_slots. A slot goes FREE -> FILLING -> READY -> HELD -> FREE; `retry` takes it from HELD
 * back to READY. Everything in keel_feed is guarded by `lock` unless its line says otherwise. */
#ifndef KEEL_DATA_FEED_IMPL_H
#define KEEL_DATA_FEED_IMPL_H
#include "base/clock.h"
#include "data/feed_plan.h"
#include "data/source.h"
#include <pthread.h>

typedef enum keel_slot_state {
    KEEL_SLOT_FREE,
    KEEL_SLOT_FILLING,
    KEEL_SLOT_READY, /* a batch, the end of an epoch or a failure */
    KEEL_SLOT_TOLD,  /* the failure was given; the next keel_feed_next tries again */
    KEEL_SLOT_HELD
} keel_slot_state;

typedef struct keel_lengths { /* of rows that differ in length, in one batch */
    keel_data_field field[KEEL_FIELDS_MAX];
    int64_t count[KEEL_FIELDS_MAX];
    size_t bytes[KEEL_FIELDS_MAX];
    size_t room[KEEL_FIELDS_MAX]; /* staged streams: of the slot's buffers, which grow */
} keel_lengths;

typedef struct keel_slot {
    keel_slot_state state;
    const keel_data_field *field; /* of its rows: what the feed says, or its own lengths say */
    const int64_t *count;
    const size_t *bytes;
    keel_lengths *own;         /* NULL: all rows of the feed have one shape */
    int64_t *row;              /* [max_rows] where there are lengths: its rows in the dataset */
    char *at[KEEL_FIELDS_MAX]; /* a buffer of max_rows for each field; NULL: not wanted */
    keel_batch batch;          /* complete when READY */
    bool is_end;               /* of the epoch batch.epoch (streams) */
    bool failed;
    keel_failure failure;
    int64_t failed_row; /* rows engine: the failure is that of the first row that fails */
    keel_plan_step plan;
    int64_t taken, done; /* rows handed to workers, rows finished */
    char note[256];      /* streams: what to tell the user with this item */
} keel_slot;

typedef struct keel_stream keel_stream;
typedef struct keel_staged keel_staged;

struct keel_feed {
    const keel_dataset *dataset; /* const after create, as all down to `plan` */
    const keel_data_spec *spec;
    const keel_source *source;
    keel_feed_options o;
    int n_field;                            /* of a batch */
    keel_data_field field[KEEL_FIELDS_MAX]; /* with the types of a batch */
    keel_dtype want[KEEL_FIELDS_MAX];       /* those types again, for sources */
    int64_t count[KEEL_FIELDS_MAX];         /* elements of a row */
    size_t bytes[KEEL_FIELDS_MAX];          /* of a row in a batch; 0: not wanted */
    int64_t row_bytes;                      /* of all */
    uint64_t open; /* bit i: rows differ in length in field i; shape, count and bytes above are
                      those of the longest */
    int n_made;    /* behind the dataset's fields */
    keel_feed_made *made;    /* [n_made] */
    int weight;              /* the first field of weights; -1: none */
    int label;               /* class weights: the field of labels */
    bool may_fail;           /* some value may not fit the type that is wanted for it */
    int64_t max_rows, chunk; /* chunk: rows that a worker takes at once */
    bool planned;            /* the number of rows is known: plan is valid */
    keel_feed_plan plan;

    pthread_mutex_t lock;
    pthread_cond_t work, ready;
    pthread_t *threads;
    int n_threads;
    bool quit, paused;
    int busy; /* threads that read without the lock */

    keel_slot *slots;
    int n_slots;
    uint64_t next_out, next_fill;
    uint32_t fill_epoch; /* what is scheduled next (rows) */
    int64_t fill_step;
    bool begun, ended; /* consumer: an epoch was begun; its end was given */
    uint32_t epoch;    /* consumer's epoch and step */
    int64_t step;

    keel_scratch scratch; /* of the consumer, where it reads itself */
    keel_stream *stream;  /* streams */
    keel_staged *staged;  /* and rows of theirs with shapes of their own, the producer's */
    double waited;
    char note[256];
};

/* Weights, their sum and class weights of a filled batch. No lock needed: the slot is the caller's.
 */
void keel_feed_finish(const keel_feed *f, keel_slot *s);

/* feed_lengths.c. The shape that the longest row needs; then a slot with lengths of its own; and
 * the lengths that its rows have, once it is known which they are. */
bool keel_feed_is_open(const keel_feed *f, int field);
keel_status keel_feed_find_longest(keel_feed *f, int field);
keel_status keel_feed_own_lengths(const keel_feed *f, keel_slot *s);
void keel_feed_measure(const keel_feed *f, keel_slot *s, const int64_t *row);
/* Of a field that is made of another, where the fields of the dataset have these shapes. */
keel_shape keel_feed_made_shape(const keel_feed *f, int field, const keel_data_field *fields);
/* The slot's own lengths of such fields, once those of the others are known. */
void keel_feed_measure_made(const keel_feed *f, keel_slot *s);
/* What a dim is padded to; -1: it is larger than all buckets. */
int64_t keel_feed_padded(const keel_feed *f, int64_t dim);

/* feed_staged.c. Keep rows of one shape, the first of a batch or more; lay all of them out. */
keel_status keel_feed_staged_create(keel_feed *f);
void keel_feed_staged_destroy(keel_feed *f);
keel_status keel_feed_stage(const keel_feed *f, bool first, const void *const *data,
                            const keel_shape *shape, int64_t rows);
keel_status keel_feed_unstage(const keel_feed *f, keel_slot *s);
/* Rows [from, to) of the fields that are made of others; all others are there. The row that failed,
 * or `to`. Any thread, each with its own scratch. */
keel_status keel_feed_make(const keel_feed *f, const keel_slot *s, int64_t from, int64_t to,
                           keel_scratch *scratch, int64_t *failed);

/* Rows by index. */
void *keel_feed_rows_worker(void *feed);                         /* thread */
keel_status keel_feed_rows_begin(keel_feed *f, uint32_t epoch);  /* locked */
keel_status keel_feed_rows_next(keel_feed *f, keel_slot **slot); /* locked */

/* Streams. */
keel_status keel_feed_stream_create(keel_feed *f);
void keel_feed_stream_destroy(keel_feed *f);
void *keel_feed_stream_worker(void *feed);
keel_status keel_feed_stream_begin(keel_feed *f, uint32_t epoch);
keel_status keel_feed_stream_next(keel_feed *f, keel_slot **slot);

/* Locked: nobody reads any more, all slots that are not held are free. */
void keel_feed_flush(keel_feed *f);

/* Locked: wait for the slot that comes next, adding to `waited`. */
void keel_feed_wait(keel_feed *f, const keel_slot *s);

#endif
