/* What a thread that reads rows tells others: where it is, for those who wait for it (watchdog.h),
 * and which rows it could not read. A thread has one, which its scratch points to; only the place
 * is read by other threads. */
#ifndef KEEL_DATA_TRAIL_H
#define KEEL_DATA_TRAIL_H
#include "data/faults.h"

typedef struct keel_trail {
    /* The innermost dataset that is being read, and its row; NULL: none is. `count` changes with
     * both, so that who looks twice knows whether the thread has moved. */
    _Atomic(const keel_data_origin *) in;
    _Atomic int64_t row;
    _Atomic uint64_t count;
    /* While a dataset is read that may end before the run does: the stage that made it, which is
     * what others see instead; NULL: none. */
    const keel_data_origin *shown;
    /* Of the last failure: the innermost dataset that failed, and its row; NULL: not known. */
    const keel_data_origin *failed_in;
    int64_t failed_row;
    keel_faults faults; /* rows that a stage passed over, until somebody takes them */
} keel_trail;

typedef struct keel_trail_mark { /* where the thread was before */
    const keel_data_origin *in;
    int64_t row;
} keel_trail_mark;

static inline void keel_trail_set(keel_trail *t, const keel_data_origin *in, int64_t row)
{
    const bool hidden = t->shown && in;
    atomic_store_explicit(&t->in, hidden ? t->shown : in, memory_order_relaxed);
    atomic_store_explicit(&t->row, hidden ? -1 : row, memory_order_relaxed);
    atomic_store_explicit(&t->count, atomic_load_explicit(&t->count, memory_order_relaxed) + 1,
                          memory_order_release);
}

/* t may be NULL in all of these. */
static inline keel_trail_mark keel_trail_enter(keel_trail *t, const keel_data_origin *in,
                                               int64_t row)
{
    keel_trail_mark m = { 0 };
    if (!t) return m;
    m.in = atomic_load_explicit(&t->in, memory_order_relaxed);
    m.row = atomic_load_explicit(&t->row, memory_order_relaxed);
    keel_trail_set(t, in, row);
    return m;
}

static inline void keel_trail_leave(keel_trail *t, keel_trail_mark m)
{
    if (t) keel_trail_set(t, m.in, m.row);
}

/* Show `in` from now on. Returns what was shown, for the same call when that ends. */
static inline const keel_data_origin *keel_trail_show(keel_trail *t, const keel_data_origin *in)
{
    const keel_data_origin *before = t ? t->shown : NULL;
    if (t) t->shown = in;
    return before;
}

static inline void keel_trail_failed(keel_trail *t, const keel_data_origin *in, int64_t row)
{
    if (!t || t->failed_in) return;
    t->failed_in = in;
    t->failed_row = row;
}

#endif
