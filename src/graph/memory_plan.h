/* Where each buffer of a program lies: exact lifetimes in, offsets into one arena out. */
#ifndef KEEL_GRAPH_MEMORY_PLAN_H
#define KEEL_GRAPH_MEMORY_PLAN_H
#include "base/error.h"
#include <stdint.h>

typedef struct keel_buffer {
    int64_t bytes;
    int first, last; /* times at which it is written first and read last, inclusive */
    int64_t offset;  /* the plan's answer, a multiple of 64 */
} keel_buffer;

/* Places buffers so that those whose times overlap do not overlap in memory. Takes the best of four
 * greedy orders (size, area, duration, start) with first fit; for more than 4096 buffers, the order
 * of start alone. *total: bytes of the arena. *bound: the most bytes that are ever live at the same
 * time, which no plan can beat. Cost: O(n^2) for up to 4096 buffers, O(n log n) beyond. Source:
 * Pisarchyk and Lee 2020, arXiv 2001.03288 (greedy by size). */
keel_status keel_memory_plan(keel_buffer *buffer, int n, int64_t *total, int64_t *bound);

#endif
