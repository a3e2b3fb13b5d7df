/* Whether a run fits into the memory that its control group leaves. One function for all who run
 * programs: fit, evaluate, predict, and functions (keel/function.h). */
#ifndef KEEL_TRAIN_RUN_MEMORY_H
#define KEEL_TRAIN_RUN_MEMORY_H
#include "data/feed.h"

typedef struct keel_run_memory {
    const char *what; /* "fit" */
    int64_t steps;    /* bytes that steps write, and that are not in memory yet */
    int64_t copies;   /* of the model: as it is saved, as callbacks keep it */
    int64_t outputs;  /* of rows that come out, in memory */
    bool keeps;       /* values for backward that could be made again instead */
    bool whole;       /* all rows at once, though micro-batches are possible */
    bool grows;       /* more rows may come out than these: the input leaves them half */
    struct {
        keel_feed *feed; /* NULL: there is none */
        int64_t least;   /* bytes that it needs */
    } input[2];          /* the second: of the validation */
    bool asked;          /* input_memory was given: feeds keep that limit */
} keel_run_memory;

/* Before the first step. Where a control group limits the memory, the feeds get no more than what
 * the rest leaves, the validation a quarter of it or its least. KEEL_EARG: not even the least fits;
 * the text has the bytes of each part. */
keel_status keel_run_memory_check(const keel_run_memory *m);

/* Within a run: outputs that grow need so many bytes more. KEEL_ENOMEM: a control group leaves
 * less. */
keel_status keel_run_memory_more(int64_t bytes);

#endif
