/* See across.h. */
#include "graph/across.h"
#include "base/memory.h"
#include "base/tree.h"
#include <string.h>

static int64_t element_of(const keel_program *p)
{
    return (int64_t)keel_dtype_size(p->options.real);
}

/* ---- the nodes of processes ------------------------------------------------------------------ */

keel_status keel_process_nodes_make(keel_process_nodes *out, const keel_lanes *l, int64_t n,
                                    bool rows)
{
    const size_t most = (size_t)l->n_process * (size_t)keel_tree_nodes(n);
    *out = (keel_process_nodes){ 0 };
    out->node = keel_calloc(most, sizeof *out->node);
    out->before = keel_calloc((size_t)l->n_process + 1, sizeof *out->before);
    if (!out->node || !out->before) return KEEL_ENOMEM;
    for (int q = 0; q < l->n_process; q++) {
        int64_t at, end, next;
        (rows ? keel_lanes_rows : keel_lanes_range)(l, n, q, &at, &end);
        for (int slot = 0; at < end; at = next, slot++) {
            next = keel_tree_next(n, at, end);
            out->node[out->n++] = (keel_part){
                .worker = q, .slot = slot, .closes = keel_tree_closes(n, at, next, 0, n, true)
            };
        }
        out->before[q + 1] = out->n;
    }
    return KEEL_OK;
}

/* Without shards a process leaves one gradient, and they are added from left to right. */
static keel_status one_each(keel_process_nodes *out, const keel_lanes *l, int64_t rows)
{
    *out = (keel_process_nodes){ 0 };
    out->node = keel_calloc((size_t)l->n_process, sizeof *out->node);
    out->before = keel_calloc((size_t)l->n_process + 1, sizeof *out->before);
    if (!out->node || !out->before) return KEEL_ENOMEM;
    for (int q = 0; q < l->n_process; q++) {
        int64_t at, end;
        keel_lanes_rows(l, rows, q, &at, &end);
        if (at < end) {
            out->node[out->n] = (keel_part){ .worker = q, .closes = out->n > 0 };
            out->n++;
        }
        out->before[q + 1] = out->n;
    }
    return KEEL_OK;
}

void keel_process_nodes_free(keel_process_nodes *x)
{
    keel_free(x->node);
    keel_free(x->before);
    *x = (keel_process_nodes){ 0 };
}

keel_status keel_across_bind(keel_bound *b, const keel_lanes *l)
{
    if (l->n_process == 1) return KEEL_OK;
    KEEL_TRY(keel_process_nodes_make(&b->row_nodes, l, b->rows, true));
    if (l->shards)
        return keel_process_nodes_make(&b->gradient_nodes, l, keel_lanes_shards(l, b->rows), false);
    return one_each(&b->gradient_nodes, l, b->rows);
}

/* ---- made and ended -------------------------------------------------------------------------- */

static keel_status measure_nodes(keel_across *x)
{
    const keel_lanes *l = x->lanes;
    x->own_most = 1;
    x->all_most = l->n_process;
    for (int64_t n = 1; n <= l->shards; n++) {
        keel_process_nodes nodes;
        const keel_status s = keel_process_nodes_make(&nodes, l, n, false);
        if (s >= 0) {
            const int own = keel_nodes_of(&nodes, l->process);
            if (own > x->own_most) x->own_most = own;
            if (nodes.n > x->all_most) x->all_most = nodes.n;
        }
        keel_process_nodes_free(&nodes);
        KEEL_TRY(s);
    }
    return KEEL_OK;
}

/* Nearly equal parts of whole tiles. */
static keel_status divide(keel_across *x, const keel_program *p)
{
    const int n = x->lanes->n_process;
    int q = 0;
    KEEL_TRY(keel_store_tiles(p->store, p->trains, &x->tile, &x->n_tile));
    for (int i = 0; i < x->n_tile; i++)
        for (; q < n && x->tile[i].offset + x->tile[i].count / 2 >= p->n_grad / n * q; q++)
            x->first[q] = q ? x->tile[i].offset : 0;
    while (q <= n) x->first[q++] = p->n_grad;
    return KEEL_OK;
}

static keel_status allocate(keel_across *x, const keel_program *p)
{
    const size_t n = (size_t)x->lanes->n_process;
    const size_t element = keel_dtype_size(p->options.real);
    const size_t nodes = n * (size_t)keel_tree_nodes(p->options.max_rows);
    int64_t longest = 0, sums = 0;
    for (int i = 0; i < p->graph->n_node; i++) {
        const keel_node *d = &p->graph->node[i].node;
        if (d->partial + 1 > longest) longest = d->partial + 1;
        if (d->partial_backward + 1 > longest) longest = d->partial_backward + 1;
        if (d->sums + 1 > sums) sums = d->sums + 1;
    }
    x->sums_length = p->sums_doubles / p->slots;
    x->at = keel_calloc(n, sizeof *x->at);
    x->bytes = keel_calloc(n, sizeof *x->bytes);
    x->first = keel_calloc(n + 1, sizeof *x->first);
    x->send = keel_calloc(n, sizeof *x->send);
    x->receive = keel_calloc(n, sizeof *x->receive);
    x->send_bytes = keel_calloc(n, sizeof *x->send_bytes);
    if (!x->at || !x->bytes || !x->first || !x->send || !x->receive || !x->send_bytes)
        return KEEL_ENOMEM;
    if (p->graph->backward) KEEL_TRY(divide(x, p));
    if (p->options.dry) return KEEL_OK;
    x->records = keel_calloc(nodes * (size_t)longest, sizeof *x->records);
    x->sums = keel_calloc(nodes * (size_t)x->sums_length + 1, sizeof *x->sums);
    x->temporary = keel_calloc((size_t)(KEEL_TREE_NODES_MAX + 2) * (size_t)sums, sizeof(double));
    if (!x->records || !x->sums || !x->temporary) return KEEL_ENOMEM;
    if (!p->graph->backward) return KEEL_OK;
    const int me = x->lanes->process;
    const size_t part = (size_t)(x->first[me + 1] - x->first[me]);
    x->received = keel_aligned_calloc((size_t)x->all_most * part + 1, element);
    if (x->own_most > 1)
        x->more = keel_aligned_calloc((size_t)(x->own_most - 1) * (size_t)p->n_grad + 1, element);
    return x->received && (x->own_most == 1 || x->more) ? KEEL_OK : KEEL_ENOMEM;
}

keel_status keel_across_create(keel_program *p)
{
    if (p->lanes->n_process == 1) return KEEL_OK;
    keel_across *x = p->across = keel_calloc(1, sizeof *x);
    if (!x) return KEEL_ENOMEM;
    x->comm = p->options.comm;
    x->lanes = p->lanes;
    KEEL_TRY(measure_nodes(x));
    KEEL_TRY(keel_across_make_carried(x, p));
    return allocate(x, p);
}

void keel_across_destroy(keel_across *x)
{
    if (!x) return;
    keel_free(x->at);
    keel_free(x->bytes);
    keel_free(x->records);
    keel_free(x->sums);
    keel_free(x->temporary);
    keel_free(x->tile);
    keel_free(x->first);
    keel_free(x->more);
    keel_free(x->received);
    keel_free(x->carried);
    keel_free(x->send);
    keel_free(x->receive);
    keel_free(x->send_bytes);
    keel_free(x);
}

/* ---- planned --------------------------------------------------------------------------------- */

/* The most nodes that one process has: so many exchanges bring all of them. */
static int most_nodes(const keel_process_nodes *x)
{
    int most = 0;
    for (int i = 0; i < x->n; i++)
        if (x->node[i].slot >= most) most = x->node[i].slot + 1;
    return most;
}

/* Records that processes exchange while the program runs. */
static void add_records(const keel_program *p, int64_t nodes, keel_traffic *out)
{
    for (int g = 0; g < p->schedule.n_segment; g++) {
        const keel_segment *s = &p->schedule.segment[g];
        if (s->merge < 0) continue;
        const keel_node *n = &p->graph->node[s->merge].node;
        const int64_t length = s->merge_backward ? n->partial_backward : n->partial;
        out->statistics += nodes * (length + 1) * (int64_t)sizeof(double);
        out->exchanges++;
    }
}

keel_status keel_across_traffic(const keel_program *p, int64_t rows, keel_traffic *out)
{
    enum { AGREEMENTS = 3 }; /* before the step, after the rows, and with the votes */
    const keel_across *x = p->across;
    *out = (keel_traffic){ 0 };
    if (!x) return KEEL_OK;
    const int64_t others = x->lanes->n_process - 1;
    const int me = x->lanes->process;
    const int64_t element = element_of(p), part = x->first[me + 1] - x->first[me];
    keel_bound b = { .rows = rows };
    const keel_status s = keel_across_bind(&b, x->lanes);
    if (s >= 0) {
        const int64_t row_nodes = keel_nodes_of(&b.row_nodes, me);
        int64_t first, end;
        keel_lanes_rows(x->lanes, rows, me, &first, &end);
        const int64_t nodes = keel_nodes_of(&b.gradient_nodes, me);
        add_records(p, row_nodes, out);
        out->statistics *= others;
        out->gradients = (nodes * (p->n_grad - part) + others * part) * element;
        out->others = others * (row_nodes * x->sums_length + AGREEMENTS * (KEEL_COMM_NUMBERS + 1)) *
                      (int64_t)sizeof(double);
        out->exchanges += AGREEMENTS + 2 + most_nodes(&b.gradient_nodes) + (x->carried_bytes > 0);
        out->others += others * (end - first) * x->carried_bytes;
        out->buffers = rows * x->carried_bytes +
                       (x->all_most * part + (x->own_most - 1) * p->n_grad) * element;
    }
    keel_process_nodes_free(&b.row_nodes);
    keel_process_nodes_free(&b.gradient_nodes);
    return s;
}

/* ---- exchanges ------------------------------------------------------------------------------- */

keel_status keel_across_gather(keel_across *x, void *base, const int *before, size_t unit)
{
    for (int q = 0; q < x->lanes->n_process; q++) {
        x->at[q] = (size_t)before[q] * unit;
        x->bytes[q] = (size_t)(before[q + 1] - before[q]) * unit;
    }
    return keel_comm_all_gather(x->comm, base, x->at, x->bytes);
}

/* ---- gradients ------------------------------------------------------------------------------- */

/* A node of this process, as a flat range. */
static char *own_node(const keel_program *p, int slot)
{
    return slot == 0 ? p->workspace[0].grad
                     : p->across->more + (slot - 1) * p->n_grad * element_of(p);
}

/* Adds the parts that workers have left of a tile. */
static void fold_parts(const keel_program *p, const keel_bound *b, const keel_tile *t)
{
    const keel_dtype real = p->options.real;
    const int64_t at = t->offset * element_of(p);
    keel_gradient_part part[KEEL_LANES_MAX];
    char *stack[KEEL_LANES_MAX];
    int depth = 0;
    const int n = keel_gradient_parts(p, b, t->variable,
                                      t->offset - p->store->weight[t->variable].offset, part);
    for (int i = 0; i < n; i++) {
        stack[depth++] = part[i].data;
        for (int c = part[i].closes; c > 0; c--, depth--)
            keel_gradients_add(real, &(keel_addition){ .to = stack[depth - 2],
                                                       .from = stack[depth - 1],
                                                       .count = t->count });
    }
    for (int i = 0; i < depth; i++)
        if (stack[i] != own_node(p, i) + at)
            memcpy(own_node(p, i) + at, stack[i], (size_t)(t->count * element_of(p)));
}

static void make_nodes(const keel_program *p, const keel_bound *b, int worker, const keel_tile *t)
{
    const int n = keel_nodes_of(&b->gradient_nodes, p->lanes->process);
    char *out[KEEL_TREE_NODES_MAX];
    for (int k = 0; k < n; k++) out[k] = own_node(p, k) + t->offset * element_of(p);
    keel_program_tile_nodes(p, b, worker, t->variable,
                            t->offset - p->store->weight[t->variable].offset, t->count, out);
}

void keel_across_fold(const keel_program *p, const keel_bound *b, int worker)
{
    const keel_across *x = p->across;
    const int64_t n_worker = p->lanes->n_worker;
    if (b->n_busy == 0) return;
    for (int64_t i = x->n_tile * worker / n_worker; i < x->n_tile * (worker + 1) / n_worker; i++) {
        const keel_tile *t = &x->tile[i];
        const keel_gradient_kind kind = p->gradient[t->variable].kind;
        if (!p->schedule.reached[t->variable]) continue;
        if (p->tiled[t->variable].node >= 0)
            make_nodes(p, b, worker, t);
        else if (kind == KEEL_GRADIENT_MERGED ? b->piece[0].row == 0 : kind != KEEL_GRADIENT_NONE)
            fold_parts(p, b, t);
    }
}

/* One exchange for the first node of each process, one for the second, and so on. */
keel_status keel_across_scatter(const keel_program *p, const keel_bound *b)
{
    keel_across *x = p->across;
    const keel_process_nodes *nodes = &b->gradient_nodes;
    const int me = x->lanes->process, n = x->lanes->n_process;
    const int64_t element = element_of(p), part = (x->first[me + 1] - x->first[me]) * element;
    const int most = most_nodes(nodes);
    for (int k = 0; k < most; k++) {
        const bool sends = k < keel_nodes_of(nodes, me);
        for (int q = 0; q < n; q++) {
            const int64_t bytes = (x->first[q + 1] - x->first[q]) * element;
            const bool comes = k < keel_nodes_of(nodes, q);
            x->send[q] = sends ? own_node(p, k) + x->first[q] * element : NULL;
            x->send_bytes[q] = sends && q != me ? (size_t)bytes : 0;
            x->receive[q] = x->received + (nodes->before[q] + k) * part;
            x->bytes[q] = comes && q != me ? (size_t)part : 0;
        }
        KEEL_TRY(keel_comm_exchange(
            x->comm, &(keel_exchange){ x->send, x->send_bytes, x->receive, x->bytes }));
    }
    return KEEL_OK;
}

int keel_across_parts(const keel_program *p, const keel_bound *b, keel_variable v, int64_t first,
                      keel_gradient_part *out)
{
    const keel_across *x = p->across;
    const keel_process_nodes *nodes = &b->gradient_nodes;
    const keel_gradient_kind kind = p->gradient[v].kind;
    const int me = x->lanes->process;
    const int64_t at = p->store->weight[v].offset + first, element = element_of(p);
    const int64_t part = x->first[me + 1] - x->first[me];
    const bool none = kind == KEEL_GRADIENT_NONE && p->tiled[v].node < 0;
    const int n = kind == KEEL_GRADIENT_MERGED || none ? 1 : nodes->n;
    for (int i = 0; i < n; i++) {
        const keel_part *node = &nodes->node[i];
        const bool own = node->worker == me || none;
        out[i] = (keel_gradient_part){
            .data = own ? own_node(p, none ? 0 : node->slot) + at * element
                        : x->received + (i * part + at - x->first[me]) * element,
            .closes = n > 1 ? node->closes : 0,
        };
    }
    return n;
}

keel_status keel_across_share(const keel_program *p)
{
    keel_across *x = p->across;
    const int64_t element = element_of(p);
    for (int q = 0; q < x->lanes->n_process; q++) {
        x->at[q] = (size_t)(x->first[q] * element);
        x->bytes[q] = (size_t)((x->first[q + 1] - x->first[q]) * element);
    }
    return keel_comm_all_gather(x->comm, p->workspace[0].grad, x->at, x->bytes);
}
