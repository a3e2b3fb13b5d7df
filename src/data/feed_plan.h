/* Which rows the steps of an epoch are: the table at the head of feed.h as arithmetic.
 *
 * A pass is the data once, in the order of its own shuffle. An epoch is a pass where nothing else
 * was asked; where steps_per_epoch is smaller than the data, or rows are carried or wrapped, epochs
 * are cut from the endless row of passes. Pure functions, no state. */
#ifndef KEEL_DATA_FEED_PLAN_H
#define KEEL_DATA_FEED_PLAN_H
#include "data/feed.h"

typedef enum keel_plan_kind {
    KEEL_PLAN_WHOLE,  /* an epoch is a pass */
    KEEL_PLAN_STEPS,  /* an epoch is so many steps of the row of passes, each pass cut for itself */
    KEEL_PLAN_ROWS,   /* an epoch is so many full batches of the row of passes, cut anywhere */
    KEEL_PLAN_CARRIED /* an epoch ends with the last full batch that the rows so far allow */
} keel_plan_kind;

typedef struct keel_feed_plan {
    int64_t n, batch;            /* rows of a pass, rows of a full step */
    int64_t steps_per_epoch;     /* 0: an epoch is the data */
    int64_t first_epoch, epochs; /* those asked for: [first_epoch, epochs); epochs 0: not known */
    keel_end_of_data end;
    keel_plan_kind kind;
    int64_t pass_steps; /* steps of one pass that is cut for itself */
} keel_feed_plan;

typedef struct keel_plan_step {
    int64_t rows, duplicates;
    uint64_t first_row; /* in the epoch */
    int64_t pass;       /* of the first row */
    int64_t position;   /* of the first row in its pass; rows beyond the end go on in ... */
    bool same_pass;     /* ... the same pass from its start, else in the next pass */
} keel_plan_step;

/* Needs n, batch >= 1. KEEL_EDATA: the policy refuses these numbers; `name` for the message. */
keel_status keel_feed_plan_init(keel_feed_plan *p, int64_t n, const keel_feed_options *o,
                                const char *name);
int64_t keel_feed_plan_steps(const keel_feed_plan *p, uint32_t epoch);
int64_t keel_feed_plan_rows(const keel_feed_plan *p, uint32_t epoch);
/* 0 <= step < keel_feed_plan_steps(p, epoch) */
keel_plan_step keel_feed_plan_step(const keel_feed_plan *p, uint32_t epoch, int64_t step);
/* Every row count that can come, largest first; at most two. */
int keel_feed_plan_counts(const keel_feed_plan *p, int64_t counts[2]);
/* The line for the user, "" if there is nothing to say. */
void keel_feed_plan_note(const keel_feed_plan *p, const char *name, char *text, size_t size);
/* The last epoch whose numbers do not overflow. */
bool keel_feed_plan_can_count(const keel_feed_plan *p, uint32_t epoch);

#endif
