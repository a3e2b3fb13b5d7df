/* Vector clocks over ranges of memory: report work that is enqueued without a wait for other work
 * which it needs, or which needs it, whatever the timing. The host and each stream have a clock,
 * which counts what it has done and what it knows of the others. Each range keeps who wrote it last
 * and who has read it since. */
#ifndef KEEL_TESTS_STANDIN_CLOCKS_H
#define KEEL_TESTS_STANDIN_CLOCKS_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "device/device.h"

enum { CLOCKS_HOST = KEEL_DEVICE_STREAMS, CLOCKS_PARTIES, CLOCKS_WHO = 40 };

typedef struct clocks_access {
    int64_t at; /* by the clock of who did it; 0: nobody */
    char who[CLOCKS_WHO];
} clocks_access;

typedef struct clocks_range {
    uintptr_t begin, end;
    int writer;
    clocks_access written, read[CLOCKS_PARTIES];
} clocks_range;

typedef struct clocks {
    int64_t now[CLOCKS_PARTIES][CLOCKS_PARTIES], event[KEEL_DEVICE_EVENTS][CLOCKS_PARTIES];
    clocks_range *range; /* [n] ascending, without overlaps */
    int n, room;
    int reports;
    char first[320]; /* of them */
} clocks;

static void clocks_join(int64_t *to, const int64_t *from)
{
    for (int i = 0; i < CLOCKS_PARTIES; i++)
        if (from[i] > to[i]) to[i] = from[i];
}

/* Something new is enqueued, behind all that the host knows. */
static void clocks_enqueue(clocks *c, int stream)
{
    clocks_join(c->now[stream], c->now[CLOCKS_HOST]);
    c->now[stream][stream]++;
}

static void clocks_insert(clocks *c, int at, clocks_range r)
{
    if (c->n == c->room) {
        c->room = 2 * c->room + 64;
        if (!(c->range = realloc(c->range, (size_t)c->room * sizeof r))) abort();
    }
    memmove(&c->range[at + 1], &c->range[at], (size_t)(c->n - at) * sizeof r);
    c->range[at] = r;
    c->n++;
}

/* Makes `at` a border, if it is within a range. Returns the first range from there on. */
static int clocks_cut(clocks *c, uintptr_t at)
{
    int low = 0, high = c->n;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (c->range[middle].end <= at)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == c->n || c->range[low].begin >= at) return low;
    clocks_range right = c->range[low];
    c->range[low].end = right.begin = at;
    clocks_insert(c, low + 1, right);
    return low + 1;
}

static void clocks_report(clocks *c, const char *who, const char *does, const char *what,
                          const char *other, const char *still)
{
    if (c->reports++ == 0)
        snprintf(c->first, sizeof c->first, "'%s' %s %s, which '%s' may still be %s", who, does,
                 what, other, still);
}

/* `party` reads or writes [begin, end), now. what: names the memory. */
static void clocks_touch(clocks *c, int party, const char *who, const void *begin, int64_t bytes,
                         bool writes, const char *what)
{
    const uintptr_t end = (uintptr_t)begin + (uintptr_t)bytes;
    const int64_t *knows = c->now[party];
    int i = clocks_cut(c, (uintptr_t)begin);
    clocks_cut(c, end);
    for (uintptr_t at = (uintptr_t)begin; at < end; at = c->range[i++].end) {
        if (i == c->n || c->range[i].begin > at) {
            const uintptr_t to = i < c->n && c->range[i].begin < end ? c->range[i].begin : end;
            clocks_insert(c, i, (clocks_range){ .begin = at, .end = to });
        }
        clocks_range *r = &c->range[i];
        if (r->written.at > knows[r->writer])
            clocks_report(c, who, writes ? "writes" : "reads", what, r->written.who, "writing");
        for (int q = 0; writes && q < CLOCKS_PARTIES; q++)
            if (r->read[q].at > knows[q])
                clocks_report(c, who, "writes", what, r->read[q].who, "reading");
        clocks_access *mine = writes ? &r->written : &r->read[party];
        if (writes) {
            r->writer = party;
            memset(r->read, 0, sizeof r->read);
        }
        mine->at = knows[party];
        snprintf(mine->who, sizeof mine->who, "%s", who);
    }
}

/* The memory is gone. */
static void clocks_forget(clocks *c, const void *begin, int64_t bytes)
{
    const int from = clocks_cut(c, (uintptr_t)begin);
    const int to = clocks_cut(c, (uintptr_t)begin + (uintptr_t)bytes);
    memmove(&c->range[from], &c->range[to], (size_t)(c->n - to) * sizeof *c->range);
    c->n -= to - from;
}

#endif
