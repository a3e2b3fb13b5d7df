/* The memory of a stand-in: its own, whose addresses the host cannot use, and page-locked memory of
 * the host. Who touches it is told to the clocks, or noted for the graph that is captured. */
#ifndef KEEL_TESTS_STANDIN_MEMORY_H
#define KEEL_TESTS_STANDIN_MEMORY_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "base/round.h"
#include "standin_device.h"

/* ---- allocated ------------------------------------------------------------------------------- */

static keel_status standin_allocate(keel_device *d, int64_t bytes, const char *what, void **out)
{
    standin *s = standin_of(d);
    const int64_t held = bytes > 0 ? keel_round_up(bytes, STANDIN_ALIGN) : STANDIN_ALIGN;
    standin_not_captured(s, "memory is allocated");
    if (standin_fails(s) || s->n_block == STANDIN_BLOCKS ||
        held > STANDIN_SPACE - STANDIN_ALIGN - s->used)
        return keel_fail(KEEL_ENOMEM, "%s has no room for %lld bytes", d->name, (long long)bytes);
    s->block[s->n_block++] = (struct standin_block){ s->used, bytes, true, what };
    *out = s->foreign + s->used;
    s->used += held + STANDIN_ALIGN;
    s->allocations++;
    return KEEL_OK;
}

static struct standin_block *standin_block_of(standin *s, const void *foreign)
{
    const int64_t at = (const char *)foreign - s->foreign;
    for (int i = 0; i < s->n_block; i++)
        if (s->block[i].live && at >= s->block[i].at && at <= s->block[i].at + s->block[i].bytes)
            return &s->block[i];
    fprintf(stderr, "%s: %p is not memory of it\n", s->base.name, foreign);
    abort();
}

static keel_status standin_allocate_host(keel_device *d, int64_t bytes, void **out)
{
    standin *s = standin_of(d);
    if (s->locks_nothing) return keel_fail(KEEL_ENOMEM, "%s: nothing can be locked", d->name);
    char *at = aligned_alloc(64, (size_t)keel_round_up(bytes, 64) + 64);
    if (!at) abort();
    memset(at, 0, (size_t)bytes + 64);
    *out = at + 64;
    ((int64_t *)*out)[-1] = bytes; /* in front of it */
    if (s->n_locked == STANDIN_LOCKED) abort();
    s->locked[s->n_locked].at = *out;
    s->locked[s->n_locked++].bytes = bytes;
    s->allocations++;
    return KEEL_OK;
}

/* Where `bytes` at a foreign pointer are. */
static void *standin_at(standin *s, const void *foreign, int64_t bytes)
{
    const struct standin_block *b = standin_block_of(s, foreign);
    const int64_t at = (const char *)foreign - s->foreign;
    if (bytes > b->at + b->bytes - at) {
        fprintf(stderr, "%s: %lld bytes at %p reach beyond their block\n", s->base.name,
                (long long)bytes, foreign);
        abort();
    }
    return s->data + at;
}

/* ---- touched, and released ------------------------------------------------------------------- */

static void standin_touch(standin *s, int party, const char *who, const void *at, int64_t bytes,
                          bool writes)
{
    char what[80] = "memory of the host";
    if (bytes == 0) return;
    if (s->tape) {
        standin_tape_touch(s->tape, who, at, bytes, writes);
        return;
    }
    const char *foreign = at;
    if (foreign >= s->foreign && foreign < s->foreign + STANDIN_SPACE) {
        const struct standin_block *b = standin_block_of(s, at);
        snprintf(what, sizeof what, "%s + %lld", b->what,
                 (long long)(foreign - s->foreign - b->at));
    }
    clocks_touch(&s->clocks, party, who, at, bytes, writes, what);
}

static void standin_host_touches(keel_device *d, const void *host, int64_t bytes, bool writes)
{
    standin *s = standin_of(d);
    standin_not_captured(s, "work of the host");
    s->clocks.now[CLOCKS_HOST][CLOCKS_HOST]++;
    standin_touch(s, CLOCKS_HOST, "the host", host, bytes, writes);
}

static void standin_release(keel_device *d, void *at)
{
    standin *s = standin_of(d);
    standin_not_captured(s, "memory is released");
    struct standin_block *b = standin_block_of(s, at);
    if (s->lost) { /* it may still use it */
        s->allocations--;
        return;
    }
    standin_touch(s, CLOCKS_HOST, "releasing", at, b->bytes, true);
    clocks_forget(&s->clocks, s->foreign + b->at, b->bytes + 1);
    madvise(s->data + b->at, (size_t)keel_round_up(b->bytes, STANDIN_ALIGN), MADV_DONTNEED);
    b->live = false;
    s->allocations--;
}

static void standin_release_host(keel_device *d, void *at)
{
    standin *s = standin_of(d);
    const int64_t bytes = ((int64_t *)at)[-1];
    if (s->lost) { /* until it closes, when what hangs is not done */
        s->allocations--;
        return;
    }
    standin_touch(s, CLOCKS_HOST, "releasing", at, bytes, true);
    clocks_forget(&s->clocks, at, bytes);
    for (int i = 0; i < s->n_locked; i++)
        if (s->locked[i].at == at) s->locked[i] = s->locked[--s->n_locked];
    free((char *)at - 64);
    s->allocations--;
}

#endif
