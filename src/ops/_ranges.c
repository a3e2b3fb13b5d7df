/* See ranges.h. */
#include "ops/ranges.h"
#include "ops/reads.h"

int keel_ranges_most(const keel_node *n)
{
    return 2 * (n->n_in + n->n_out + n->n_weight) + n->n_saved + 3;
}

typedef struct ranges {
    const keel_call *c;
    keel_range *out;
    int n;
} ranges;

static void add(ranges *r, const void *at, int64_t bytes, bool reads, bool writes)
{
    void **pointer = (void **)(uintptr_t)at; /* inputs of a call are const there */
    if (!*pointer || bytes == 0 || (!reads && !writes)) return;
    r->out[r->n++] = (keel_range){ pointer, bytes, reads, writes };
}

static int64_t bytes_of(const keel_spec *s, int64_t rows)
{
    return rows * keel_row_count(s) * (int64_t)keel_dtype_size(s->dtype);
}

static void add_values(ranges *r, unsigned reads)
{
    const keel_call *c = r->c;
    const keel_node *n = c->node;
    for (int k = 0; k < n->n_in; k++)
        add(r, &c->in[k], bytes_of(&n->in[k], c->rows), keel_reads_in(reads, k), false);
    for (int k = 0; k < n->n_out; k++)
        add(r, &c->out[k], bytes_of(&n->out[k], c->rows), keel_reads_out(reads, k), false);
}

static void add_saved(ranges *r, bool reads, bool writes)
{
    const keel_node *n = r->c->node;
    for (int k = 0; k < n->n_saved; k++)
        add(r, &r->c->saved[k], bytes_of(&n->saved[k], r->c->rows), reads, writes);
}

static void add_records(ranges *r, keel_pass pass)
{
    const keel_call *c = r->c;
    const keel_node *n = c->node;
    const int64_t length = keel_node_leaf(n, pass);
    const bool forward = pass == KEEL_FORWARD || pass == KEEL_PARTIAL;
    const int64_t merged = forward || !n->merged_backward ? n->merged : n->merged_backward;
    add(r, &c->partial, c->rows * length * (int64_t)sizeof(double), false, true);
    add(r, &c->merged, merged * (int64_t)sizeof(double), true, false);
    add(r, &c->merged_forward, n->merged * (int64_t)sizeof(double), true, false);
}

int keel_ranges_of(keel_call *c, keel_pass pass, keel_range *out)
{
    ranges r = { .c = c, .out = out };
    const keel_node *n = c->node;
    const bool forward = pass == KEEL_FORWARD || pass == KEEL_PARTIAL;
    for (int k = 0; k < n->n_weight; k++)
        add(&r, &c->weight[k], bytes_of(&n->weight[k], 1), true, false);
    add_records(&r, pass);
    if (forward) {
        add_values(&r, keel_pass_reads(n, pass));
        if (pass == KEEL_PARTIAL) return r.n;
        for (int k = 0; k < n->n_out; k++)
            add(&r, &c->out[k], bytes_of(&n->out[k], c->rows), false, true);
        add_saved(&r, false, true);
        return r.n;
    }
    add_values(&r, keel_pass_reads(n, pass));
    add_saved(&r, true, pass == KEEL_BACKWARD && n->op->weights_after_backward);
    for (int k = 0; k < n->n_out; k++)
        add(&r, &c->out_grad[k], bytes_of(&n->out[k], c->rows), true, false);
    for (int k = 0; pass == KEEL_BACKWARD && k < n->n_in; k++)
        add(&r, &c->in_grad[k], bytes_of(&n->in[k], c->rows), c->in_adds[k], true);
    for (int k = 0; pass == KEEL_WEIGHTS && k < n->n_weight; k++)
        add(&r, &c->weight_grad[k], bytes_of(&n->weight[k], 1), c->weight_adds, true);
    return r.n;
}
