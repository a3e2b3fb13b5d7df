/* Going through a dataset in order, element by element. Each iterator has its own place, so one
 * dataset may be gone through several times at once, unless its source is a callback.
 *
 * One thread at a time uses the iterators of a run; rows by index are read ahead by its pool. */
#ifndef KEEL_DATA_ITER_H
#define KEEL_DATA_ITER_H
#include "data/element.h"
#include "data/work.h"

typedef struct keel_pool keel_pool;
typedef struct keel_watchdog keel_watchdog;
struct keel_trail;

/* What the iterators of one pipeline share. */
typedef struct keel_run {
    uint64_t seed;
    bool leaves_early; /* whoever reads the pipeline may leave a pass before its end */
    keel_pool *pool;
    keel_work *work;            /* borrowed; NULL: nobody wants to know */
    keel_probe *probe;          /* of the thread that uses the iterators */
    struct keel_trail *trail;   /* of that thread */
    keel_account *account;      /* borrowed; NULL: nobody counts */
    keel_relief relief;         /* of that thread */
    struct keel_window *window; /* all that are open */
    int n_iter;
    keel_ledger ledger;
    keel_spot place; /* of the failure that was given last */
} keel_run;

typedef struct keel_iter_kind keel_iter_kind;

struct keel_iter {
    const keel_dataset *dataset;
    const keel_applied *applied; /* NULL: of a source */
    const keel_data_spec *spec;
    keel_run *run;
    const keel_iter_kind *kind;
    int work;         /* the kind of work that it is, for probes */
    keel_position at; /* seed, pass and stages; index: elements given in this pass */
    bool open;        /* `begin` was called */
    bool failed;      /* what it was asked for last */
    bool left_early;  /* a pass may be left before its end */
    bool exact;       /* a pass may be left before its end, and the next one depends on how far it
                         was read: so nothing is read ahead */
    const keel_data_origin *shown; /* of a dataset that is made on the way: keel_trail.shown */
    void *own;
    int n_parent;
    struct keel_iter *parent[];
};
typedef struct keel_iter keel_iter;

/* Begin a run over d: starts its pool. The members seed, leaves_early, work and account are set. */
keel_status keel_run_begin(keel_run *run, const keel_dataset *d, int n_threads);
void keel_run_end(keel_run *run); /* after its iterators; a zeroed run is allowed */
/* Before it is used: w looks at its threads too. NULL is allowed for w. */
keel_status keel_run_watch(const keel_run *run, keel_watchdog *w);
/* An empty scratch for the thread that uses the iterators. */
keel_scratch keel_run_scratch(const keel_run *run);

/* The next element of a whole pipeline: keel_iter_next, with its time noted, and with everything
 * that was read ahead let go of where there is no room. */
keel_status keel_run_next(keel_iter *it, keel_element **out);
void keel_run_let_go(void *run);

/* stages: those of parents before this one; 0 for a whole pipeline. */
keel_status keel_iter_create(keel_iter **out, const keel_dataset *d, keel_run *run,
                             uint16_t stages);
/* The same for a dataset that the stage of `outer` has made, and that may end before the run does.
 */
keel_status keel_iter_create_within(keel_iter **out, const keel_dataset *d, const keel_iter *outer,
                                    uint16_t stages);
void keel_iter_destroy(keel_iter *it); /* NULL is allowed */

/* Go to the first element of a pass. The first call may be for any pass. */
keel_status keel_iter_begin(keel_iter *it, uint64_t pass);
/* The next element, which the caller releases. KEEL_END: the pass is over. After a failure the next
 * call tries the same element again, where the source can. */
keel_status keel_iter_next(keel_iter *it, keel_element **out);
/* Go to element `index` of a pass that was just begun, without cost where elements are read by
 * index; a stream is read up to there. KEEL_END: the pass has fewer elements. */
keel_status keel_iter_seek(keel_iter *it, int64_t index);
/* Let its random stages draw from another seed than the run's: before `begin`. */
void keel_iter_reseed(keel_iter *it, uint64_t seed);
/* Leave out the element whose failure was given last; nothing if none was: stages that have not
 * failed, and those that were not begun, have nothing to leave out. */
void keel_iter_pass(keel_iter *it);

/* Row i of a batch as an element of its own, in the fields of `it`. */
keel_status keel_element_row(keel_element **out, const keel_element *batch, int64_t i,
                             const keel_iter *it);

/* Read one row by index into a new element. Any thread. */
keel_status keel_element_read(keel_element **out, const keel_dataset *d, keel_position at,
                              keel_account *a, keel_scratch *scratch);

#endif
