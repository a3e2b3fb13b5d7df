/* A stream that process 0 reads for all: each of the others gets its rows of a step. The feed does
 * not know what connects the processes; train/shared_feed.c does. */
#ifndef KEEL_DATA_FEED_SHARED_H
#define KEEL_DATA_FEED_SHARED_H
#include "base/error.h"
#include <stdbool.h>
#include <stdint.h>

enum { KEEL_SHARED_NUMBERS = 8 };

/* All functions are called by the consumer's thread of every process, in the same order. */
typedef struct keel_feed_share {
    const void *context;
    int process, n_process;
    double patience; /* seconds that process 0 may be silent */
    /* The rows of a process in a step of so many. */
    void (*rows_of)(const void *context, int64_t rows, int process, int64_t *first, int64_t *end);
    /* How each process stands, and numbers [KEEL_SHARED_NUMBERS] of process 0. A failure of one is
     * that of all. */
    keel_status (*agree)(const void *context, keel_status mine, int64_t *number);
    /* All get what process 0 has. */
    keel_status (*broadcast)(const void *context, void *data, size_t n_bytes);
    /* Of `rows` rows of so many bytes at `data`, in process 0, each gets its own into their places.
     */
    keel_status (*scatter)(const void *context, int64_t rows, void *data, size_t n_bytes);
} keel_feed_share;

#endif
