/* What the files of _kept.h share. */
#ifndef KEEL_DATA_STAGES_KEPT_IMPL_H
#define KEEL_DATA_STAGES_KEPT_IMPL_H
#include "data/row_store.h"
#include "data/stages/_kept.h"
#include <pthread.h>
#include <stdatomic.h>

/* keel_applied.made */
typedef struct keel_kept {
    const char *path;
    bool deflate, random; /* random: elements depend on the seed of the run */
    _Atomic bool ready;   /* the file is there */
    keel_row_file file;
    pthread_mutex_t lock; /* of what follows */
    keel_row_writer *writer;
    const keel_iter *owner; /* the iterator that writes; NULL: rows by number are written */
    _Atomic bool *done;     /* [rows] by number: it is written */
    int64_t left;           /* that are not */
    _Atomic uint64_t seed;  /* of what was written by number */
    _Atomic int begun_anew; /* for runs of another seed */
    bool given_up;          /* a pass was left before its end */
    _Atomic bool stopped;   /* writing has failed, and is not tried again */
    keel_failure failed;    /* why */
} keel_kept;

/* With the lock held. A writer unless there is one. */
keel_status keel_kept_open_writer(const keel_applied *s, keel_kept *k);
/* All `count` elements are written: the file is read from now on. */
keel_status keel_kept_commit(const keel_applied *s, keel_kept *k, int64_t count);
/* What was written is given up; the next one to write begins anew. */
void keel_kept_give_up(const keel_applied *s, keel_kept *k);
/* What a failure `r` to write means for the run: KEEL_OK unless memory is gone. */
keel_status keel_kept_written(const keel_applied *s, keel_kept *k, keel_status r);

/* Without the lock. Write element `at`; scratch buffers 0 and 1 are used. */
keel_status keel_kept_write(const keel_applied *s, keel_kept *k, const keel_element *e,
                            keel_position at, keel_scratch *scratch);
/* What was written by number is of another seed than this one, whose rows may take its place. */
bool keel_kept_may_begin_anew(keel_kept *k, uint64_t seed);

#endif
