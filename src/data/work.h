/* Who works on what: the time that each stage of an input takes, without what it calls, and which
 * stage a late row was in. Always on, so it must cost next to nothing: rows that are fast are
 * sampled, so that looking at the clock takes about 1/2000 of their time. Work of each kind is
 * sampled by itself, since a thread may do fast work on many rows and slow work on few. Yields of
 * streams are all measured.
 *
 * A thread that reads has a probe, and alone writes to it; anyone may read it at any time. */
#ifndef KEEL_DATA_WORK_H
#define KEEL_DATA_WORK_H
#include "base/clock.h"
#include "data/source.h"

enum { KEEL_WORK_MAX = 48, KEEL_PROBES_MAX = 80, KEEL_WORK_KINDS = 16 };

/* The kind of work that is always measured: a stream may wait for others at any of its yields. */
enum { KEEL_WORK_YIELD = 1 };

/* What a source does, where it says so. */
typedef enum keel_work_part {
    KEEL_PART_ALL, /* nothing in particular */
    KEEL_PART_FILE,
    KEEL_PART_DECODE,
    KEEL_PART_RESIZE,
    KEEL_PART_COUNT
} keel_work_part;

typedef struct keel_work keel_work;

typedef struct keel_probe {
    keel_work *work;
    const struct keel_trail *trail; /* of its thread, which tells where it is while it does not
                                       measure; NULL: nobody knows then */
    bool measures;                  /* the clock runs for this row */
    int kind;
    int64_t weight;                                          /* rows that this one stands for */
    int64_t skip[KEEL_WORK_KINDS], skipped[KEEL_WORK_KINDS]; /* rows until the next that is
                                                               measured; between the last two */
    int64_t begin, since; /* of the row; of what is being done now */
    int64_t switches;     /* clock readings of this row */
    int64_t looked;       /* when `cpu` was read */
    _Atomic(const void *)
        now; /* the origin or the word being worked on; NULL: nothing, or not said */
    _Atomic int part;
    _Atomic(const void *) asked;       /* now is keel_work_waits: for an element of this stage */
    _Atomic(struct keel_probe *) late; /* which that thread is making; NULL: nobody yet */
    _Atomic int64_t place;             /* of the row being read, by index */
    _Atomic int64_t ns[KEEL_WORK_MAX][KEEL_PART_COUNT];
    _Atomic int64_t rows[KEEL_WORK_MAX];
    _Atomic int64_t cpu; /* nanoseconds of this thread on a core, some milliseconds ago */
} keel_probe;

/* Words that stand where an origin would: waiting for another thread; the feed's own work on rows:
 * copying them into a batch, and computing fields from others. */
extern const char keel_work_waits[], keel_work_gathers[], keel_work_makes[];

/* One line of the table: a stage, or a source. */
typedef struct keel_work_line {
    const void *key;             /* its origin, or a word */
    const keel_dataset *dataset; /* NULL: a word */
    double seconds[KEEL_PART_COUNT], blamed[KEEL_PART_COUNT];
    double rows;
} keel_work_line;

/* A table of all stages of a dataset, which must outlive it, with probes for so many threads, at
 * most KEEL_PROBES_MAX. */
keel_status keel_work_create(keel_work **out, const keel_dataset *d, int n_probe);
void keel_work_destroy(keel_work *w); /* NULL is allowed */

/* Only for bench/account.c: while it is true no thread gets a probe, so nothing is measured. */
extern bool keel_work_silent;

/* A probe for a thread; NULL: all are given. NULL is allowed for w. */
keel_probe *keel_work_probe(keel_work *w, const struct keel_trail *trail);

/* Around work of a kind, 0 to KEEL_WORK_KINDS - 1: decides whether it is measured. It may be within
 * work of another kind, whose clock then stops. NULL is allowed. */
typedef struct keel_probe_span {
    bool any, outer, inner; /* the clock was read; what is outside is measured; this is */
    int kind, part;         /* of what is outside */
    const void *now;
    int64_t weight, begin, switches, from;
} keel_probe_span;
keel_probe_span keel_probe_start(keel_probe *p, int kind);
void keel_probe_stop(keel_probe *p, const keel_probe_span *s);
static inline keel_probe_span keel_probe_begin(keel_probe *p, int kind)
{
    if (!p) return (keel_probe_span){ 0 };
    if (p->measures || p->skip[kind] == 0) return keel_probe_start(p, kind);
    p->skip[kind]--;
    return (keel_probe_span){ 0 };
}
static inline void keel_probe_end(keel_probe *p, const keel_probe_span *s)
{
    if (s->any) keel_probe_stop(p, s);
}

/* Around the work of a stage on a row. The mark is given to keel_probe_leave. */
typedef struct keel_probe_mark {
    const void *key;
    int part;
} keel_probe_mark;
keel_probe_mark keel_probe_switch(keel_probe *p, const void *key, int part, int64_t rows);
void keel_probe_count(keel_probe *p, int64_t rows); /* of what is being worked on */
static inline keel_probe_mark keel_probe_enter(keel_probe *p, const void *key, keel_work_part part)
{
    return p && p->measures ? keel_probe_switch(p, key, (int)part, part == KEEL_PART_ALL)
                            : (keel_probe_mark){ NULL, -1 };
}
/* The same for several rows at once. */
static inline keel_probe_mark keel_probe_rows(keel_probe *p, const void *key, int64_t rows)
{
    return p && p->measures ? keel_probe_switch(p, key, KEEL_PART_ALL, rows)
                            : (keel_probe_mark){ NULL, -1 };
}
/* The same for more work on a row that was counted. */
static inline keel_probe_mark keel_probe_resume(keel_probe *p, const void *key)
{
    return p && p->measures ? keel_probe_switch(p, key, KEEL_PART_ALL, 0)
                            : (keel_probe_mark){ NULL, -1 };
}
static inline void keel_probe_leave(keel_probe *p, keel_probe_mark m)
{
    if (m.part >= 0 && p && p->measures) keel_probe_switch(p, m.key, m.part, 0);
}
static inline void keel_probe_leave_rows(keel_probe *p, keel_probe_mark m, int64_t rows)
{
    if (m.part >= 0 && p && p->measures) {
        keel_probe_count(p, rows);
        keel_probe_switch(p, m.key, m.part, 0);
    }
}
/* Within a source: from now on it does this. */
static inline void keel_probe_part(keel_probe *p, keel_work_part part)
{
    if (p && p->measures)
        keel_probe_switch(p, atomic_load_explicit(&p->now, memory_order_relaxed), (int)part, 0);
}

/* Where the row is that `first` works on, or waits for; NULL: the thread at the least place. */
typedef struct keel_work_place {
    int line, part; /* line -1: nobody says */
} keel_work_place;
#define KEEL_WORK_ANY ((keel_work_place){ -1, 0 })
keel_work_place keel_work_look(const keel_work *w, const keel_probe *first);
/* Charge an exposed wait to it, or if it is not known to all stages, by what they take. */
void keel_work_blame(keel_work *w, keel_work_place at, int64_t ns);

/* The lines, from the sources on. Returns their number. */
int keel_work_lines(const keel_work *w, keel_work_line line[KEEL_WORK_MAX]);
/* Of all threads: seconds of work, and those of them on a core. */
void keel_work_sums(const keel_work *w, double *seconds, double *cpu);

#endif
