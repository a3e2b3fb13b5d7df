/* What a stand-in is asked for: each call tells the clocks what it touches, and is enqueued with
 * the pointers to where the memory is. */
#ifndef KEEL_TESTS_STANDIN_CALLS_H
#define KEEL_TESTS_STANDIN_CALLS_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "graph/bind.h"
#include "ops/ranges.h"
#include "standin_streams.h"

/* ---- copies and sums ------------------------------------------------------------------------- */

/* A graph copies from and to page-locked memory only. */
static void standin_captures_copy(const standin *s, const void *host)
{
    for (int i = 0; s->tape && i < s->n_locked; i++)
        if ((const char *)host >= s->locked[i].at &&
            (const char *)host < s->locked[i].at + s->locked[i].bytes)
            return;
    standin_not_captured(s, "a copy of memory that is not page-locked");
}

static void standin_copy_in(keel_device *d, keel_device_stream stream, void *to,
                            const void *from_host, int64_t bytes)
{
    standin *s = standin_of(d);
    if (!standin_takes(s)) return;
    standin_captures_copy(s, from_host);
    standin_enqueue(s, (int)stream);
    standin_touch(s, (int)stream, "a copy in", from_host, bytes, false);
    standin_touch(s, (int)stream, "a copy in", to, bytes, true);
    standin_give(
        s, (int)stream,
        (standin_work){
            .kind = STANDIN_COPY, .to = standin_at(s, to, bytes), .from = from_host, .n = bytes });
}

static void standin_copy_out(keel_device *d, keel_device_stream stream, void *to_host,
                             const void *from, int64_t bytes)
{
    standin *s = standin_of(d);
    if (!standin_takes(s)) return;
    standin_captures_copy(s, to_host);
    standin_enqueue(s, (int)stream);
    s->out_bytes += bytes;
    standin_touch(s, (int)stream, "a copy out", from, bytes, false);
    standin_touch(s, (int)stream, "a copy out", to_host, bytes, true);
    standin_give(
        s, (int)stream,
        (standin_work){
            .kind = STANDIN_COPY, .to = to_host, .from = standin_at(s, from, bytes), .n = bytes });
}

static void standin_clear(keel_device *d, void *at, int64_t bytes)
{
    standin *s = standin_of(d);
    if (!standin_takes(s)) return;
    standin_enqueue(s, KEEL_COMPUTE_STREAM);
    standin_touch(s, KEEL_COMPUTE_STREAM, "clearing", at, bytes, true);
    standin_give(
        s, KEEL_COMPUTE_STREAM,
        (standin_work){ .kind = STANDIN_CLEAR, .to = standin_at(s, at, bytes), .n = bytes });
}

static void standin_add(keel_device *d, keel_dtype real, void *to, const void *from, int64_t count)
{
    standin *s = standin_of(d);
    const int64_t bytes = count * (int64_t)keel_dtype_size(real);
    if (!standin_takes(s)) return;
    standin_enqueue(s, KEEL_COMPUTE_STREAM);
    standin_touch(s, KEEL_COMPUTE_STREAM, "adding", from, bytes, false);
    standin_touch(s, KEEL_COMPUTE_STREAM, "adding", to, bytes, true);
    standin_give(s, KEEL_COMPUTE_STREAM,
                 (standin_work){ .kind = STANDIN_ADD,
                                 .to = standin_at(s, to, bytes),
                                 .from = standin_at(s, from, bytes),
                                 .n = count,
                                 .real = real });
}

static void standin_copy(keel_device *d, void *to, const void *from, int64_t bytes)
{
    standin *s = standin_of(d);
    if (!standin_takes(s)) return;
    standin_enqueue(s, KEEL_COMPUTE_STREAM);
    standin_touch(s, KEEL_COMPUTE_STREAM, "a copy", from, bytes, false);
    standin_touch(s, KEEL_COMPUTE_STREAM, "a copy", to, bytes, true);
    standin_give(s, KEEL_COMPUTE_STREAM,
                 (standin_work){ .kind = STANDIN_COPY,
                                 .to = standin_at(s, to, bytes),
                                 .from = standin_at(s, from, bytes),
                                 .n = bytes });
}

static void standin_sum(keel_device *d, keel_device_group *g, int rank, keel_dtype real,
                        const keel_device_range *range, int n)
{
    standin *s = standin_of(d);
    for (int i = 0; i < n; i++) {
        const int64_t bytes = range[i].count * (int64_t)keel_dtype_size(real);
        if (!standin_takes(s)) return;
        standin_enqueue(s, KEEL_COPY_OUT_STREAM);
        standin_touch(s, KEEL_COPY_OUT_STREAM, "a sum", range[i].at, bytes, true);
        s->sums++;
        standin_give(s, KEEL_COPY_OUT_STREAM,
                     (standin_work){ .kind = STANDIN_SUM,
                                     .to = standin_at(s, range[i].at, bytes),
                                     .n = range[i].count,
                                     .real = real,
                                     .group = (standin_group *)g,
                                     .rank = rank });
    }
}

static keel_status standin_join(keel_device *const *device, int n, keel_device_group **out)
{
    standin_group *g;
    if (standin_of(device[0])->joins_nobody)
        return keel_fail(KEEL_EUNSUP, "these stand-ins add nothing up");
    g = standin_group_make(device[0]->type, n);
    for (int i = 0; i < n; i++) standin_of(device[i])->group = g;
    *out = &g->base;
    return KEEL_OK;
}

static void standin_leave(keel_device_group *g)
{
    standin_group_free((standin_group *)g);
}

/* ---- folds, and what optimizers need --------------------------------------------------------- */

/* A work's own copy of what it was given. */
static void *standin_own(const void *given, size_t bytes)
{
    void *own = malloc(bytes);
    if (!own) abort();
    return memcpy(own, given, bytes);
}

/* Writes the stack from the lowest node on that its pushes complete. A row that completes one is
 * never on the stack itself. */
static void standin_fold(keel_device *d, const keel_device_fold *f)
{
    standin *s = standin_of(d);
    const int64_t record = (f->length + 1) * (int64_t)sizeof(double);
    const int64_t leaves = f->rows * f->length * (int64_t)sizeof(double);
    int depth = f->depth, least = f->depth, most = f->depth - 1;
    if (!standin_takes(s)) return;
    for (int i = 0; i < f->rows; i++, depth++) {
        const int top = f->closes[i] > 0 ? depth - 1 : depth;
        most = top > most ? top : most;
        depth -= f->closes[i];
        least = depth < least ? depth : least;
    }
    double *low = f->stack + least * (f->length + 1);
    const int64_t bytes = (most + 1 - least) * record;
    keel_device_fold *own = standin_own(f, sizeof *f);
    standin_enqueue(s, KEEL_COMPUTE_STREAM);
    standin_touch(s, KEEL_COMPUTE_STREAM, "folding", f->leaf, leaves, false);
    standin_touch(s, KEEL_COMPUTE_STREAM, "folding", low, bytes, true);
    own->leaf = standin_at(s, f->leaf, leaves);
    own->stack = (double *)standin_at(s, low, bytes) - least * (f->length + 1);
    standin_give(s, KEEL_COMPUTE_STREAM, (standin_work){ .kind = STANDIN_FOLD, .fold = own });
}

static void standin_move_one(standin *s, const keel_device_move *m)
{
    const int64_t bytes = m->count * (int64_t)keel_dtype_size(m->real);
    if (!standin_takes(s)) return;
    keel_device_move *own = standin_own(m, sizeof *m);
    s->moves++;
    clocks_enqueue(&s->clocks, KEEL_COMPUTE_STREAM);
    standin_touch(s, KEEL_COMPUTE_STREAM, "moving", m->g, bytes, false);
    standin_touch(s, KEEL_COMPUTE_STREAM, "moving", m->w, bytes, true);
    own->g = standin_at(s, m->g, bytes);
    own->w = standin_at(s, m->w, bytes);
    for (int k = 0; k < keel_rule_slots(m->rule); k++) {
        standin_touch(s, KEEL_COMPUTE_STREAM, "moving", m->slot[k], bytes, true);
        own->slot[k] = standin_at(s, m->slot[k], bytes);
    }
    standin_give(s, KEEL_COMPUTE_STREAM, (standin_work){ .kind = STANDIN_MOVE, .move = own });
}

static void standin_move(keel_device *d, const keel_device_move *m, int n)
{
    for (int i = 0; i < n; i++) standin_move_one(standin_of(d), &m[i]);
}

static void standin_measure(keel_device *d, const keel_device_measure *m)
{
    standin *s = standin_of(d);
    const int64_t bytes = m->count * (int64_t)keel_dtype_size(m->real);
    const int64_t sums = (m->count + m->tile - 1) / m->tile * 2 * (int64_t)sizeof(double);
    if (!standin_takes(s)) return;
    keel_device_measure *own = standin_own(m, sizeof *m);
    clocks_enqueue(&s->clocks, KEEL_COMPUTE_STREAM);
    standin_touch(s, KEEL_COMPUTE_STREAM, "measuring", m->w, bytes, false);
    standin_touch(s, KEEL_COMPUTE_STREAM, "measuring", m->sums, sums, true);
    own->w = standin_at(s, m->w, bytes);
    own->sums = standin_at(s, m->sums, sums);
    standin_give(s, KEEL_COMPUTE_STREAM, (standin_work){ .kind = STANDIN_MEASURE, .measure = own });
}

static void standin_orthogonalize(keel_device *d, const keel_device_orthogonal *o)
{
    standin *s = standin_of(d);
    const int64_t element = (int64_t)keel_dtype_size(o->real);
    const int64_t bytes = o->rows * o->columns * element;
    const int64_t room = keel_orthogonal_room_of(o->rows, o->columns, o->tile, element).size;
    if (!standin_takes(s)) return;
    keel_device_orthogonal *own = standin_own(o, sizeof *o);
    clocks_enqueue(&s->clocks, KEEL_COMPUTE_STREAM);
    standin_touch(s, KEEL_COMPUTE_STREAM, "making orthogonal", o->x, bytes, true);
    standin_touch(s, KEEL_COMPUTE_STREAM, "making orthogonal", o->scratch, room, true);
    own->x = standin_at(s, o->x, bytes);
    own->scratch = standin_at(s, o->scratch, room);
    standin_give(s, KEEL_COMPUTE_STREAM,
                 (standin_work){ .kind = STANDIN_ORTHOGONALIZE, .orthogonal = own });
}

static void standin_factor(keel_device *d, const keel_device_factored *f)
{
    standin *s = standin_of(d);
    const int64_t element = (int64_t)keel_dtype_size(f->real), bytes = f->count * element;
    if (!standin_takes(s)) return;
    keel_device_factored *own = standin_own(f, sizeof *f);
    s->moves++;
    clocks_enqueue(&s->clocks, KEEL_COMPUTE_STREAM);
    standin_touch(s, KEEL_COMPUTE_STREAM, "moving", f->g, bytes, false);
    own->g = standin_at(s, f->g, bytes);
    void **const written[] = { &own->w, &own->v, &own->scratch, &own->r, &own->c };
    const int64_t size[] = { bytes, bytes, keel_factored_room_of(f).size,
                             f->matrices * f->rows * element, f->matrices * f->columns * element };
    for (int k = 0; k < 5; k++) {
        if (size[k] == 0) continue;
        standin_touch(s, KEEL_COMPUTE_STREAM, "moving", *written[k], size[k], true);
        *written[k] = standin_at(s, *written[k], size[k]);
    }
    standin_give(s, KEEL_COMPUTE_STREAM, (standin_work){ .kind = STANDIN_FACTOR, .factored = own });
}

static void standin_project(keel_device *d, const keel_device_project *p)
{
    standin *s = standin_of(d);
    const int64_t bytes = keel_shape_count(&p->shape) * (int64_t)keel_dtype_size(p->real);
    if (!standin_takes(s)) return;
    keel_device_project *own = standin_own(p, sizeof *p);
    s->projections++;
    clocks_enqueue(&s->clocks, KEEL_COMPUTE_STREAM);
    standin_touch(s, KEEL_COMPUTE_STREAM, "constraining", p->w, bytes, true);
    own->w = standin_at(s, p->w, bytes);
    standin_give(s, KEEL_COMPUTE_STREAM, (standin_work){ .kind = STANDIN_PROJECT, .project = own });
}

static void standin_check(keel_device *d, const keel_device_check *c)
{
    standin *s = standin_of(d);
    const int64_t element = (int64_t)keel_dtype_size(c->real);
    const int64_t tiles = c->n_tile * (int64_t)sizeof *c->tile;
    const int64_t votes = c->n_tile * (int64_t)sizeof *c->vote;
    if (!standin_takes(s)) return;
    keel_device_check *own = standin_own(c, sizeof *c);
    if (c->scale == 1 && !c->squares)
        s->looks++;
    else
        s->checks++;
    clocks_enqueue(&s->clocks, KEEL_COMPUTE_STREAM);
    standin_touch(s, KEEL_COMPUTE_STREAM, "checking", c->tile, tiles, false);
    standin_touch(s, KEEL_COMPUTE_STREAM, "checking", c->vote, votes, true);
    own->tile = standin_at(s, c->tile, tiles);
    own->vote = standin_at(s, c->vote, votes);
    standin_touch(s, KEEL_COMPUTE_STREAM, "checking", (char *)c->g + c->first * element,
                  (c->end - c->first) * element, c->scale != 1);
    own->g = standin_at(s, c->g, c->end * element);
    standin_give(s, KEEL_COMPUTE_STREAM, (standin_work){ .kind = STANDIN_CHECK, .check = own });
}

/* ---- events ---------------------------------------------------------------------------------- */

static void standin_record(keel_device *d, keel_device_stream stream, int event)
{
    standin *s = standin_of(d);
    standin_not_captured(s, "an event is recorded");
    if (!standin_takes(s)) return;
    standin_enqueue(s, (int)stream);
    memcpy(s->clocks.event[event], s->clocks.now[stream], sizeof s->clocks.event[event]);
    standin_give(s, (int)stream,
                 (standin_work){ .kind = STANDIN_RECORD,
                                 .event = &s->event[event],
                                 .n = ++s->event[event].recorded });
}

static void standin_wait(keel_device *d, keel_device_stream stream, int event)
{
    standin *s = standin_of(d);
    standin_not_captured(s, "a wait of a stream");
    if (!standin_takes(s)) return;
    standin_enqueue(s, (int)stream);
    if (!standin_ignores(s, stream == KEEL_COMPUTE_STREAM   ? "the compute stream"
                            : stream == KEEL_COPY_IN_STREAM ? "copies in"
                                                            : "copies out"))
        clocks_join(s->clocks.now[stream], s->clocks.event[event]);
    standin_give(s, (int)stream,
                 (standin_work){ .kind = STANDIN_WAIT,
                                 .event = &s->event[event],
                                 .n = s->event[event].recorded });
}

static int standin_passed(keel_device *d, int event)
{
    standin *s = standin_of(d);
    standin_not_captured(s, "the host asks for an event");
    standin_event *e = &s->event[event];
    pthread_mutex_lock(&s->failing);
    const bool failed = s->failure.status < 0 || s->refused < 0 || s->lost;
    pthread_mutex_unlock(&s->failing);
    if (failed) return -1;
    pthread_mutex_lock(&e->lock);
    const bool done = e->done >= e->recorded;
    pthread_mutex_unlock(&e->lock);
    if (done && !standin_ignores(s, "the host for an event"))
        clocks_join(s->clocks.now[CLOCKS_HOST], s->clocks.event[event]);
    return done;
}

/* ---- references ------------------------------------------------------------------------------ */

static void *standin_pointers(void **next, const void *from, int n)
{
    void **to = *next;
    if (n > 0 && from) memcpy(to, from, (size_t)n * sizeof *to);
    *next = to + n;
    return to;
}

static const char *const standin_pass[KEEL_PASS_COUNT] = {
    [KEEL_FORWARD] = "forward",   [KEEL_PARTIAL] = "records",
    [KEEL_BACKWARD] = "backward", [KEEL_PARTIAL_BACKWARD] = "records of backward",
    [KEEL_WEIGHTS] = "weights",
};

/* A copy of the call, whose pointers are where the memory is: with its arrays one block. */
static keel_call *standin_call(standin *s, const keel_call *c, int pass, int64_t scratch)
{
    const keel_node *n = c->node;
    char who[CLOCKS_WHO];
    const int pointers = 2 * (n->n_in + n->n_out + n->n_weight) + n->n_saved;
    keel_call *x = calloc(1, sizeof *x + (size_t)pointers * sizeof(void *));
    keel_range *range = calloc((size_t)keel_ranges_most(n), sizeof *range);
    if (!x || !range) abort();
    void *next = x + 1;
    *x = *c;
    x->in = standin_pointers(&next, c->in, n->n_in);
    x->in_grad = standin_pointers(&next, c->in_grad, n->n_in);
    x->out = standin_pointers(&next, c->out, n->n_out);
    x->out_grad = standin_pointers(&next, c->out_grad, n->n_out);
    x->saved = standin_pointers(&next, c->saved, n->n_saved);
    x->weight = standin_pointers(&next, c->weight, n->n_weight);
    x->weight_grad =
        standin_pointers(&next, c->weight_grad, pass == KEEL_WEIGHTS ? n->n_weight : 0);
    const int n_range = keel_ranges_of(x, (keel_pass)pass, range);
    snprintf(who, sizeof who, "%.22s %s", n->layer, standin_pass[pass]);
    for (int writes = 0; writes < 2; writes++)
        for (int i = 0; i < n_range; i++)
            if (writes ? range[i].writes : range[i].reads)
                standin_touch(s, KEEL_COMPUTE_STREAM, who, *range[i].at, range[i].bytes, writes);
    if (scratch > 0) standin_touch(s, KEEL_COMPUTE_STREAM, who, c->scratch, scratch, true);
    for (int i = 0; i < n_range; i++) *range[i].at = standin_at(s, *range[i].at, range[i].bytes);
    x->scratch = scratch > 0 ? standin_at(s, c->scratch, scratch) : NULL;
    free(range);
    return x;
}

static void standin_launch(keel_device *d, keel_run run, const keel_call *call, int pass,
                           int64_t scratch)
{
    standin *s = standin_of(d);
    if (!standin_takes(s)) return;
    standin_enqueue(s, KEEL_COMPUTE_STREAM);
    standin_give(s, KEEL_COMPUTE_STREAM,
                 (standin_work){ .kind = STANDIN_CALL,
                                 .run = run,
                                 .call = standin_call(s, call, pass, scratch) });
}

#endif
