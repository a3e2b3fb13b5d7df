/* The elements that one task of the pool makes, for windows (window.c). One element has its place
 * in the portion; the place of more is taken from the account. */
#ifndef KEEL_DATA_PORTION_H
#define KEEL_DATA_PORTION_H
#include "data/iter.h"
#include "data/pool.h"
#include "data/window.h"

typedef struct keel_trouble { /* of an element that has failed */
    keel_failure failure;
    keel_spot place;
} keel_trouble;

typedef struct keel_entry { /* an element */
    keel_position at;
    keel_element *in, *out;
    keel_status status;
    bool told;             /* its failure was given */
    bool dropped;          /* it was made, and let go */
    keel_trouble *trouble; /* NULL: it has not failed, or there was no memory to say why */
    keel_faults faults;    /* rows that others stand for */
} keel_entry;

typedef struct keel_portion {
    keel_task task; /* first, so that a task is its portion; it makes those from `first` to `end` */
    int first, end;
    int count, next; /* elements; the one that is given out next */
    int room;
    bool timed;
    double seconds, supplied; /* that the task took; that its inputs took */
    keel_iter *it;
    keel_make *make;
    keel_entry *at; /* [room]: `one`, or of the account */
    keel_entry one;
} keel_portion;

/* timed: the seconds of tasks are wanted. */
void keel_portion_init(keel_portion *p, keel_iter *it, keel_make *make, bool timed);
/* Let go of its elements, and give back the place of several. No task runs it. */
void keel_portion_clear(keel_portion *p);
/* Make room for so many elements if the account has it, and leave it as it is if not. None of its
 * elements is in use. */
void keel_portion_reserve(keel_portion *p, int room);
/* Let the pool make those from `first` to `end`. */
void keel_portion_start(keel_portion *p, int first, int end);

/* True if the account has so many bytes besides its reserve, with which all stages together can go
 * on: what is made ahead can be let go, but not its place, nor what it is made of. */
bool keel_run_has_room(const keel_run *run, int64_t n_bytes);

/* Make one element, with the scratch of this thread. */
void keel_entry_make(keel_entry *e, keel_iter *it, keel_make *make, keel_scratch *scratch);
/* Let go of what was made. */
void keel_entry_drop(keel_entry *e);
/* Keep the text of its failure, which was in `place`. */
void keel_entry_fail(keel_entry *e, const keel_spot *place);
/* Give that failure again. */
keel_status keel_entry_raise(const keel_entry *e, const keel_iter *it);
/* It was given out, or left out. */
void keel_entry_leave(keel_entry *e);

#endif
