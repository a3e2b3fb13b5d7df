/* See memory_plan.h. */
#include "graph/memory_plan.h"
#include "base/memory.h"
#include <stdlib.h>
#include <string.h>

typedef struct entry {
    double rank;
    int index;
} entry;

static int by_rank(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->rank != y->rank) return x->rank > y->rank ? -1 : 1;
    return x->index - y->index; /* qsort is not stable; the plan must be the same everywhere */
}

static int64_t aligned(int64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static double rank_of(const keel_buffer *b, int order)
{
    const double duration = (double)b->last - b->first + 1; /* last may be INT_MAX */
    switch (order) {
    case 0:
        return (double)b->bytes;
    case 1:
        return (double)b->bytes * duration;
    case 2:
        return duration;
    default:
        return -(double)b->first;
    }
}

/* Place buffers in the order of `e`; placed[] keeps those already placed sorted by offset. */
static int64_t place_all(const keel_buffer *b, const entry *e, int n, int64_t *offset, int *placed)
{
    int64_t total = 0;
    for (int k = 0; k < n; k++) {
        const keel_buffer *me = &b[e[k].index];
        int64_t at = 0;
        for (int j = 0; j < k; j++) {
            const int other = placed[j];
            if (b[other].last < me->first || me->last < b[other].first) continue;
            if (offset[other] - at >= aligned(me->bytes)) break; /* it fits before this one */
            const int64_t end = offset[other] + aligned(b[other].bytes);
            if (end > at) at = end;
        }
        offset[e[k].index] = at;
        int j = k;
        for (; j > 0 && offset[placed[j - 1]] > at; j--) placed[j] = placed[j - 1];
        placed[j] = e[k].index;
        if (at + aligned(me->bytes) > total) total = at + aligned(me->bytes);
    }
    return total;
}

static int64_t live_bound(const keel_buffer *b, int n)
{
    int64_t most = 0;
    for (int i = 0; i < n; i++) { /* the set that is live when buffer i begins */
        int64_t live = 0;
        for (int j = 0; j < n; j++)
            if (b[j].first <= b[i].first && b[i].first <= b[j].last) live += aligned(b[j].bytes);
        if (live > most) most = live;
    }
    return most;
}

keel_status keel_memory_plan(keel_buffer *buffer, int n, int64_t *total, int64_t *bound)
{
    keel_status s = KEEL_ENOMEM;
    int64_t best = -1;
    entry *e = keel_calloc((size_t)n, sizeof *e);
    int *placed = keel_calloc((size_t)n, sizeof *placed);
    int64_t *offset = keel_calloc((size_t)n, sizeof *offset);
    if (!e || !placed || !offset) goto out;
    for (int order = 0; order < 4; order++) {
        for (int i = 0; i < n; i++)
            e[i] = (entry){ .rank = rank_of(&buffer[i], order), .index = i };
        if (n > 1) qsort(e, (size_t)n, sizeof *e, by_rank);
        const int64_t t = place_all(buffer, e, n, offset, placed);
        if (best >= 0 && t >= best) continue;
        best = t;
        for (int i = 0; i < n; i++) buffer[i].offset = offset[i];
    }
    *total = best;
    *bound = live_bound(buffer, n);
    s = KEEL_OK;
out:
    keel_free(e);
    keel_free(placed);
    keel_free(offset);
    return s;
}
