/* See staged.h. */
#include "graph/staged.h"
#include "base/memory.h"
#include "base/round.h"
#include <string.h>

enum { ALIGN = 64 };

static int pointers_of(const keel_node *n)
{
    return 2 * (n->n_in + n->n_out + n->n_weight) + n->n_saved;
}

keel_status keel_staged_create(keel_staged **out, const keel_node *n, keel_pass pass)
{
    keel_staged *s = keel_calloc(1, sizeof *s);
    if (!s) return KEEL_ENOMEM;
    s->pass = pass;
    s->range = keel_calloc((size_t)keel_ranges_most(n), sizeof *s->range);
    s->foreign = keel_calloc((size_t)keel_ranges_most(n), sizeof *s->foreign);
    s->pointers = keel_calloc((size_t)pointers_of(n), sizeof *s->pointers);
    if (!s->range || !s->foreign || !s->pointers) {
        keel_staged_destroy(s);
        return KEEL_ENOMEM;
    }
    *out = s;
    return KEEL_OK;
}

void keel_staged_destroy(keel_staged *s)
{
    if (!s) return;
    keel_free(s->range);
    keel_free(s->foreign);
    keel_free(s->pointers);
    keel_free(s);
}

/* The shapes of a program are checked when its memory is planned, so nothing overflows here. */
static int64_t room(const keel_spec *s, int n, int64_t rows)
{
    int64_t bytes = 0;
    for (int k = 0; k < n; k++)
        bytes += keel_round_up(rows * keel_row_count(&s[k]) * (int64_t)keel_dtype_size(s[k].dtype),
                               ALIGN);
    return bytes;
}

int64_t keel_staged_bytes(const keel_staged *s, const keel_node *n, int64_t rows)
{
    const keel_pass passes[] = { KEEL_FORWARD, KEEL_PARTIAL, KEEL_PARTIAL_BACKWARD };
    int64_t most = 0;
    for (int i = 0; i < 3; i++)
        if (keel_node_leaf(n, passes[i]) > most) most = keel_node_leaf(n, passes[i]);
    const int64_t records = rows * most + n->merged + n->merged_backward;
    return 2 * (room(n->in, n->n_in, rows) + room(n->out, n->n_out, rows) +
                room(n->weight, n->n_weight, 1)) +
           room(n->saved, n->n_saved, rows) + records * (int64_t)sizeof(double) + 3 * ALIGN +
           s->scratch;
}

static void **copy(void ***next, const void *from, int n)
{
    void **to = *next;
    if (n > 0 && from) memcpy(to, from, (size_t)n * sizeof *to);
    *next += n;
    return to;
}

/* Its own pointers, which may be changed. */
static void copy_call(keel_staged *s, const keel_call *c)
{
    const keel_node *n = c->node;
    void **next = s->pointers;
    s->call = *c;
    s->call.in = (const void **)copy(&next, c->in, n->n_in);
    s->call.in_grad = copy(&next, c->in_grad, n->n_in);
    s->call.out = copy(&next, c->out, n->n_out);
    s->call.out_grad = (const void **)copy(&next, c->out_grad, n->n_out);
    s->call.saved = copy(&next, c->saved, n->n_saved);
    s->call.weight = (const void **)copy(&next, c->weight, n->n_weight);
    s->call.weight_grad = copy(&next, c->weight_grad, s->pass == KEEL_WEIGHTS ? n->n_weight : 0);
    s->call.plan = s->plan;
    s->call.device = NULL;
}

static void run_on_copies(keel_staged *s, keel_device *d)
{
    const int n = keel_ranges_of(&s->call, s->pass, s->range);
    char *at = s->call.scratch;
    for (int i = 0; i < n; i++) {
        const keel_range *r = &s->range[i];
        s->foreign[i] = *r->at;
        *r->at = at;
        at += keel_round_up(r->bytes, ALIGN);
        if (r->reads) d->type->copy_out(d, KEEL_COMPUTE_STREAM, *r->at, s->foreign[i], r->bytes);
    }
    s->call.scratch = at;
    const keel_status failed = keel_device_reach(d, KEEL_COMPUTE_STREAM);
    if (failed < 0) {
        keel_call_failed(&s->call, failed);
        return;
    }
    for (int i = 0; i < n; i++)
        keel_device_touches(d, *s->range[i].at, s->range[i].bytes, s->range[i].writes);
    s->run(&s->call);
    for (int i = 0; i < n; i++)
        if (s->range[i].writes)
            d->type->copy_in(d, KEEL_COMPUTE_STREAM, s->foreign[i], *s->range[i].at,
                             s->range[i].bytes);
}

void keel_staged_run(const keel_call *c)
{
    keel_staged *s = c->plan;
    keel_device *d = c->device;
    copy_call(s, c);
    if (d->type->launch)
        d->type->launch(d, s->run, &s->call, s->pass, s->scratch);
    else
        run_on_copies(s, d);
}
