/* Inside the feed: the ring of slots, which two engines fill: rows by index, and streams.
 *
 * Batches are numbered in the order of delivery (`seq`); batch seq is in slot seq % n_slots. A slot
 * goes FREE -> FILLING -> READY -> HELD -> FREE; `retry` moves it from HELD back to READY. `lock`
 * guards all members of keel_feed except where a comment says otherwise. */
#ifndef KEEL_DATA_FEED_IMPL_H
#define KEEL_DATA_FEED_IMPL_H
#include "base/clock.h"
#include "data/feed_plan.h"
#include "data/stage.h"
#include "data/tuner.h"
#include "data/watchdog.h"
#include "data/work.h"
#include <pthread.h>

typedef enum keel_slot_state {
    KEEL_SLOT_FREE,
    KEEL_SLOT_FILLING,
    KEEL_SLOT_READY, /* has a batch, the end of an epoch or a failure */
    KEEL_SLOT_TOLD,  /* its failure was reported; the next keel_feed_next tries again */
    KEEL_SLOT_HELD
} keel_slot_state;

typedef struct keel_lengths { /* shapes of one batch, if rows differ in length */
    keel_data_field field[KEEL_FIELDS_MAX];
    int64_t count[KEEL_FIELDS_MAX];
    size_t bytes[KEEL_FIELDS_MAX];
    size_t room[KEEL_FIELDS_MAX]; /* staged streams: bytes of the slot's buffers, which grow */
} keel_lengths;

typedef struct keel_slot {
    keel_slot_state state;
    const keel_data_field *field; /* shapes of its rows: the feed's, or those in `own` */
    const int64_t *count;
    const size_t *bytes;
    keel_lengths *own;           /* NULL: all rows of the feed have one shape */
    keel_position *row;          /* [max_rows] if own: where each row stands */
    const keel_applied *made_by; /* the stage that made the batch, of datasets of batches */
    keel_position element;       /* and the batch's place there */
    char *at[KEEL_FIELDS_MAX];   /* a buffer of max_rows for each field; NULL: not read */
    uint64_t lent;               /* bit k: at[k] is of options.memory */
    keel_batch batch;            /* complete when READY */
    bool is_end;                 /* streams: not a batch but the end of epoch batch.epoch */
    bool failed;
    keel_failure failure;
    int64_t failed_row; /* rows engine: the first row that failed, whose failure is kept */
    keel_plan_step plan;
    int64_t taken, done; /* rows handed to threads, rows finished */
    keel_faults faults;  /* rows engine: rows that others stand for */
    bool charged;        /* to the budgets */
    char note[256];      /* streams: a note for the user, given with this item */
    int64_t taken_bytes; /* from the account */
    uint64_t number;     /* rows engine: of the batch, in the order of delivery */
} keel_slot;

enum { KEEL_SLOTS_DEFAULT = 3, KEEL_SLOTS_TUNED = 8 /* at most */, KEEL_SLOTS_MAX = 64 };

typedef struct keel_stream keel_stream;
typedef struct keel_staged keel_staged;

struct keel_feed {
    const keel_dataset *dataset; /* this and all members down to `plan` are const after create */
    const keel_data_spec *spec;
    const keel_source *source;
    void *state;            /* of the source: of the dataset, or `flow` */
    struct keel_flow *flow; /* a pipeline that is a stream */
    bool batched;           /* elements of the dataset are batches, found by index */
    keel_feed_options o;
    int n_field;                            /* of a batch */
    keel_data_field field[KEEL_FIELDS_MAX]; /* with the types of a batch */
    keel_dtype want[KEEL_FIELDS_MAX];       /* the same types, as sources take them */
    int64_t count[KEEL_FIELDS_MAX];         /* elements of a row */
    size_t bytes[KEEL_FIELDS_MAX];          /* of a row in a batch; 0: not read */
    int64_t row_bytes;                      /* sum of bytes[] */
    keel_work *work;
    keel_probe *probe; /* streams: of what the feed itself does with rows */
    uint64_t open;     /* bit i: rows differ in length in field i; shape, count and bytes above are
                          those of the longest row */
    int n_made;        /* computed fields, after those of the dataset */
    keel_feed_made *made; /* [n_made] */
    int weight;           /* the first field of weights; -1: none */
    int label;            /* class weights: the field of labels */
    bool may_fail;        /* a value may not fit the type of its field in a batch */
    bool has_files;       /* each row is in a file of its own */
    bool shared;          /* a stream that process 0 reads for all */
    bool remote;          /* which is another process: nothing is read here */
    keel_feed_share share;
    bool partial; /* rows engine: only the rows of o.part are read */
    int64_t max_rows;
    bool planned; /* the number of rows is known, so `plan` is set */
    keel_feed_plan plan;

    pthread_mutex_t lock;
    pthread_cond_t work_ready;  /* there is work for a thread */
    pthread_cond_t ready, idle; /* idle: n_used may have grown */
    struct keel_feed_thread *threads;
    int n_threads;
    _Atomic int n_used; /* of which so many read; the others sleep */
    bool quit, paused;
    int busy;           /* threads that are reading, without the lock */
    int64_t chunk;      /* rows that a thread takes at once */
    double row_seconds; /* what reading one took, of late; 0: not known yet */

    keel_slot *slots; /* [n_room]; those from n_slots on have no buffers */
    keel_slot **ring; /* [n_room] batch q is in ring[q % n_slots] */
    int n_slots, n_room;
    bool short_of_room; /* a thread has all the room, since there was too little for several */
    int n_short;        /* threads that wait for that */
    int64_t fixed;      /* bytes that are taken until the end, besides slots */
    int64_t refused;    /* bytes of slots for which options.memory had no room */
    uint64_t next_out, next_fill;
    uint32_t fill_epoch; /* rows engine: the next step to schedule */
    int64_t fill_step;
    bool begun, ended; /* consumer: an epoch was begun; its end was reported */
    uint32_t epoch;    /* the consumer's epoch and step */
    int64_t step;
    bool passes_over;   /* steps are asked for only to come to a later one */
    int64_t wait_until; /* for keel_feed_wait, by keel_clock_ns; 0: until there is something */
    int64_t again;      /* rows that were read only to come to a place behind them */

    keel_ledger ledger;   /* rows engine: the budgets of the consumer's steps so far */
    keel_scratch scratch; /* for a consumer that reads without threads */
    keel_trail *trail;    /* [n_trail] of each thread; the first is the consumer's */
    int n_trail;
    keel_watchdog *watchdog; /* NULL: nobody wants to know */
    keel_stream *stream;     /* streams only */
    keel_staged *staged; /* streams whose rows have their own shapes; used by the producer only */
    double waited;
    keel_tuner tuner; /* the consumer's */
    char note[256];
};

typedef struct keel_feed_thread {
    keel_feed *feed;
    int number;
    keel_scratch scratch; /* guarded by the feed while it does not read */
    pthread_t id;
} keel_feed_thread;

static inline keel_slot *keel_feed_slot(const keel_feed *f, uint64_t batch)
{
    return f->ring[batch % (uint64_t)f->n_slots];
}

/* feed_options.c: refuse options that do not go together, and a stream that cannot last for the
 * steps requested. KEEL_EARG, KEEL_EDATA. */
keel_status keel_feed_check_options(const keel_feed *f);
keel_status keel_feed_check_stream(const keel_feed *f);

/* feed_memory.c: the bytes of one more slot; add it, if there is room; all buffers that are there
 * from the begin to the end. Locked, or before there are threads. */
int64_t keel_feed_slot_bytes(const keel_feed *f);
int64_t keel_feed_need(const keel_feed *f);    /* the least of all */
int64_t keel_feed_reading(const keel_feed *f); /* of it, to read rows by number */
/* A source of which it is not known what its rows take; NULL: there is none. */
const keel_dataset *keel_feed_unknown(const keel_dataset *d);
/* A row of `in` (NULL: not known) found no room, though nothing else was in its way: adds the least
 * that works to the text. */
keel_status keel_feed_short(const keel_feed *f, const keel_data_origin *in);
keel_status keel_feed_add_slot(keel_feed *f);
keel_status keel_feed_take_memory(keel_feed *f);
void keel_feed_give_memory(keel_feed *f);

/* feed_fields.c: set the fields of a batch, their types and sizes. KEEL_EARG, KEEL_EDATA: an option
 * asks for fields or labels that the dataset does not have. */
keel_status keel_feed_choose_fields(keel_feed *f);
/* Compute the weights of a filled batch, with class weights, and their sum. Without the lock: the
 * caller has the slot to itself. */
void keel_feed_finish(const keel_feed *f, keel_slot *s);

/* feed_lengths.c: the shape of the longest row; a slot with shapes of its own; and those shapes,
 * once the rows of the slot are known. */
bool keel_feed_is_open(const keel_feed *f, int field);
keel_status keel_feed_find_longest(keel_feed *f, int field);
keel_status keel_feed_own_lengths(const keel_feed *f, keel_slot *s);
void keel_feed_measure(const keel_feed *f, keel_slot *s);
/* Of a field that is made of another, where the fields of the dataset have these shapes. */
keel_shape keel_feed_made_shape(const keel_feed *f, int field, const keel_data_field *fields);
/* The slot's own lengths of such fields, once those of the others are known. */
void keel_feed_measure_made(const keel_feed *f, keel_slot *s);
/* The length that a dim is padded to; -1: it exceeds all buckets. */
int64_t keel_feed_padded(const keel_feed *f, int64_t dim);

/* feed_staged.c: collect rows, each with its shape; then copy a whole batch into its slot. */
keel_status keel_feed_staged_create(keel_feed *f);
void keel_feed_staged_destroy(keel_feed *f);
keel_status keel_feed_stage(const keel_feed *f, bool first, const void *const *data,
                            const keel_shape *shape, int64_t rows);
keel_status keel_feed_unstage(const keel_feed *f, keel_slot *s);
/* Make a field of a slot one of `rows` rows of that shape. KEEL_EREMOTE: it cannot have it. */
keel_status keel_feed_reshape(const keel_feed *f, keel_slot *s, int field, const keel_shape *shape,
                              int64_t rows);
/* Compute rows [from, to) of the computed fields, after the others were read. Returns the row that
 * failed, or `to`. Any thread, each with its own scratch. */
keel_status keel_feed_make(const keel_feed *f, const keel_slot *s, int64_t from, int64_t to,
                           keel_scratch *scratch, int64_t *failed);

/* Rows by index. */
void *keel_feed_rows_worker(void *thread);                       /* a keel_feed_thread */
keel_status keel_feed_rows_begin(keel_feed *f, uint32_t epoch);  /* locked */
keel_status keel_feed_rows_next(keel_feed *f, keel_slot **slot); /* locked */
/* Locked: where no thread reads, the slot gets the consumer's next step, if it is free. */
void keel_feed_prepare(keel_feed *f, keel_slot *s);

/* Streams. */
keel_status keel_feed_stream_create(keel_feed *f);
void keel_feed_stream_destroy(keel_feed *f);
void *keel_feed_stream_worker(void *thread);
void keel_feed_stream_enter(keel_feed *f, uint32_t epoch); /* locked, as the next two */
keel_status keel_feed_stream_first(keel_feed *f); /* the first item must not be a failure that lasts
                                                   */
keel_status keel_feed_stream_next(keel_feed *f, keel_slot **slot);

/* feed_shared.c: both for every process. */
keel_status keel_feed_shared_begin(keel_feed *f, uint32_t epoch);
keel_status keel_feed_shared_next(keel_feed *f, keel_batch *out);
/* feed.c: keel_feed_next of process 0. */
keel_status keel_feed_next_own(keel_feed *f, keel_batch *out);

/* With the lock held: wait until no thread reads, and free all slots that are not held. */
void keel_feed_flush(keel_feed *f);

/* feed_wait.c. With the lock held: wait for the next slot, add the time to `waited`, and blame the
 * stage that its row was in. */
void keel_feed_wait(keel_feed *f, const keel_slot *s);

/* feed_tune.c: choose threads and slots; called with the lock held when the consumer asks for a
 * step. */
void keel_tuner_begin(keel_feed *f);
void keel_tuner_asks(keel_feed *f);
bool keel_tuner_is_due(keel_feed *f); /* counts a step; true: it is time to look */
void keel_tuner_sees(keel_feed *f, const keel_tuner_look *totals); /* decides */
void keel_tuner_short(keel_feed *f); /* locked: there was no room for so many threads */
void keel_tuner_say(keel_feed *f);   /* without the lock: tells what was decided */

#endif
