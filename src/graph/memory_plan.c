/* See memory_plan.h. */
#include "graph/memory_plan.h"
#include "base/memory.h"
#include "base/round.h"
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
    return keel_round_up(bytes, 64);
}

enum { BY_SIZE, BY_AREA, BY_DURATION, BY_START, BY_END };

static double rank_of(const keel_buffer *b, int order)
{
    const double duration = (double)b->last - b->first + 1; /* last may be INT_MAX */
    switch (order) {
    case BY_SIZE:
        return (double)b->bytes;
    case BY_AREA:
        return (double)b->bytes * duration;
    case BY_DURATION:
        return duration;
    case BY_START:
        return -(double)b->first;
    default:
        return -(double)b->last;
    }
}

/* Places buffers in the order of `e`; placed[] lists the buffers placed so far by offset. */
static int64_t place_all(const keel_buffer *b, const entry *e, int n, int64_t *offset, int *placed)
{
    int64_t total = 0;
    for (int k = 0; k < n; k++) {
        const keel_buffer *me = &b[e[k].index];
        int64_t at = 0;
        for (int j = 0; j < k; j++) {
            const int other = placed[j];
            if (b[other].last < me->first || me->last < b[other].first) continue;
            if (offset[other] - at >= aligned(me->bytes))
                break; /* the buffer fits before this one */
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

/* ---- many buffers -----------------------------------------------------------------------------
 */

/* Free bytes below the top of the arena. */
typedef struct gap {
    int64_t at, bytes;
} gap;

typedef struct sweep {
    gap *gap; /* [GAPS_MAX + 1] by offset, never touching */
    int n_gap;
    int64_t top; /* nothing is placed from here on */
} sweep;

enum { GAPS_MAX = 1024, ORDERED_MOST = 4096 };

static void drop_gap(sweep *s, int i)
{
    s->n_gap--;
    memmove(&s->gap[i], &s->gap[i + 1], (size_t)(s->n_gap - i) * sizeof *s->gap);
}

/* First fit. */
static int64_t take(sweep *s, int64_t bytes)
{
    int i = 0;
    while (i < s->n_gap && s->gap[i].bytes < bytes) i++;
    if (i == s->n_gap) {
        s->top += bytes;
        return s->top - bytes;
    }
    const int64_t at = s->gap[i].at;
    s->gap[i].at += bytes;
    s->gap[i].bytes -= bytes;
    if (s->gap[i].bytes == 0) drop_gap(s, i);
    return at;
}

/* If there are too many gaps, the smallest is forgotten, and its bytes stay unused. */
static void give_back(sweep *s, int64_t at, int64_t bytes)
{
    int low = 0, high = s->n_gap;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (s->gap[middle].at < at)
            low = middle + 1;
        else
            high = middle;
    }
    if (low > 0 && s->gap[low - 1].at + s->gap[low - 1].bytes == at) {
        low--;
        s->gap[low].bytes += bytes;
    } else {
        memmove(&s->gap[low + 1], &s->gap[low], (size_t)(s->n_gap - low) * sizeof *s->gap);
        s->gap[low] = (gap){ .at = at, .bytes = bytes };
        s->n_gap++;
    }
    if (low + 1 < s->n_gap && s->gap[low].at + s->gap[low].bytes == s->gap[low + 1].at) {
        s->gap[low].bytes += s->gap[low + 1].bytes;
        drop_gap(s, low + 1);
    }
    if (s->n_gap <= GAPS_MAX) return;
    int least = 0;
    for (int i = 1; i < s->n_gap; i++)
        if (s->gap[i].bytes < s->gap[least].bytes) least = i;
    drop_gap(s, least);
}

/* Places buffers in the order in which they begin (e); `ends` has them in the order in which they
 * end. Each takes the first gap left by the buffers that have ended. */
static keel_status place_in_time(const keel_buffer *b, const entry *e, const entry *ends, int n,
                                 int64_t *offset, int64_t *total)
{
    sweep s = { .gap = keel_calloc(GAPS_MAX + 1, sizeof *s.gap) };
    if (!s.gap) return KEEL_ENOMEM;
    for (int k = 0, over = 0; k < n; k++) {
        const keel_buffer *me = &b[e[k].index];
        for (; b[ends[over].index].last < me->first; over++)
            give_back(&s, offset[ends[over].index], aligned(b[ends[over].index].bytes));
        offset[e[k].index] = take(&s, aligned(me->bytes));
    }
    *total = s.top;
    keel_free(s.gap);
    return KEEL_OK;
}

/* The most bytes that are live at the same time. The buffers come in the order in which they begin
 * and end. */
static int64_t live_bound(const keel_buffer *b, const entry *e, const entry *ends, int n)
{
    int64_t live = 0, most = 0;
    for (int k = 0, over = 0; k < n; k++) {
        for (; b[ends[over].index].last < b[e[k].index].first; over++)
            live -= aligned(b[ends[over].index].bytes);
        live += aligned(b[e[k].index].bytes);
        if (live > most) most = live;
    }
    return most;
}

static void sort(const keel_buffer *b, entry *e, int n, int order)
{
    for (int i = 0; i < n; i++) e[i] = (entry){ .rank = rank_of(&b[i], order), .index = i };
    if (n > 1) qsort(e, (size_t)n, sizeof *e, by_rank);
}

keel_status keel_memory_plan(keel_buffer *buffer, int n, int64_t *total, int64_t *bound)
{
    keel_status s = KEEL_ENOMEM;
    int64_t best = -1;
    entry *e = keel_calloc((size_t)n, sizeof *e), *ends = keel_calloc((size_t)n, sizeof *ends);
    int *placed = keel_calloc((size_t)n, sizeof *placed);
    int64_t *offset = keel_calloc((size_t)n, sizeof *offset);
    if (!e || !ends || !placed || !offset) goto out;
    for (int order = 0; order < BY_START && n <= ORDERED_MOST; order++) {
        sort(buffer, e, n, order);
        const int64_t t = place_all(buffer, e, n, offset, placed);
        if (best >= 0 && t >= best) continue;
        best = t;
        for (int i = 0; i < n; i++) buffer[i].offset = offset[i];
    }
    int64_t t;
    sort(buffer, e, n, BY_START);
    sort(buffer, ends, n, BY_END);
    if ((s = place_in_time(buffer, e, ends, n, offset, &t)) < 0) goto out;
    if (best < 0 || t < best) {
        best = t;
        for (int i = 0; i < n; i++) buffer[i].offset = offset[i];
    }
    *total = best;
    *bound = live_bound(buffer, e, ends, n);
out:
    keel_free(e);
    keel_free(ends);
    keel_free(placed);
    keel_free(offset);
    return s;
}
