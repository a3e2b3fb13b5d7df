/* Computes the rows of each step of an epoch: the table at the head of feed.h as arithmetic.
 *
 * A pass is the whole data once, in its own shuffled order. By default an epoch is a pass. If
 * steps_per_epoch is smaller than the data, or rows are carried or wrapped, epochs are cut from the
 * endless sequence of passes. Pure functions without state. */
#ifndef KEEL_DATA_FEED_PLAN_H
#define KEEL_DATA_FEED_PLAN_H
#include "data/feed.h"

typedef enum keel_plan_kind {
    KEEL_PLAN_WHOLE,  /* an epoch is a pass */
    KEEL_PLAN_STEPS,  /* steps_per_epoch steps of the sequence; no batch spans two passes */
    KEEL_PLAN_ROWS,   /* steps_per_epoch full batches of the sequence; a batch may span passes */
    KEEL_PLAN_CARRIED /* the full batches of a pass and the rows carried into it */
} keel_plan_kind;

typedef struct keel_feed_plan {
    int64_t n, batch;            /* rows of a pass; rows of a full step */
    int64_t steps_per_epoch;     /* 0: an epoch is the data */
    int64_t first_epoch, epochs; /* the run is [first_epoch, epochs); epochs 0: not known */
    keel_end_of_data end;
    keel_plan_kind kind;
    int64_t pass_steps; /* steps of one pass, if no batch spans two */
} keel_feed_plan;

typedef struct keel_plan_step {
    int64_t rows, duplicates;
    uint64_t first_row; /* in the epoch */
    int64_t pass;       /* of the first row */
    int64_t position;   /* of the first row in its pass */
    bool same_pass;     /* rows beyond the end of the pass are from its start; else the next pass */
} keel_plan_step;

/* Needs n, batch >= 1. KEEL_EDATA: the policy refuses these numbers; `name` for the message. */
keel_status keel_feed_plan_init(keel_feed_plan *p, int64_t n, const keel_feed_options *o,
                                const char *name);
int64_t keel_feed_plan_steps(const keel_feed_plan *p, uint32_t epoch);
int64_t keel_feed_plan_rows(const keel_feed_plan *p, uint32_t epoch);
/* 0 <= step < keel_feed_plan_steps(p, epoch) */
keel_plan_step keel_feed_plan_step(const keel_feed_plan *p, uint32_t epoch, int64_t step);
/* The row counts that steps can have, largest first; at most two. */
int keel_feed_plan_counts(const keel_feed_plan *p, int64_t counts[2]);
/* A note for the user in one line; "": none. */
void keel_feed_plan_note(const keel_feed_plan *p, const char *name, char *text, size_t size);
/* True if the row numbers of this epoch do not overflow. */
bool keel_feed_plan_can_count(const keel_feed_plan *p, uint32_t epoch);

#endif
