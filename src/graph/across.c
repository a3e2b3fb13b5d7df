/* See across.h. */
#include "graph/across.h"
#include "base/memory.h"
#include "base/tree.h"
#include "graph/buckets.h"
#include <string.h>

/* ---- the nodes of processes ------------------------------------------------------------------ */

keel_status keel_process_nodes_make(keel_process_nodes *out, const keel_lanes *l, int64_t n)
{
    const size_t most = (size_t)l->n_process * (size_t)keel_tree_nodes(n);
    *out = (keel_process_nodes){ 0 };
    out->node = keel_calloc(most, sizeof *out->node);
    out->before = keel_calloc((size_t)l->n_process + 1, sizeof *out->before);
    if (!out->node || !out->before) return KEEL_ENOMEM;
    for (int q = 0; q < l->n_process; q++) {
        int64_t at, end, next;
        keel_lanes_range(l, n, q, &at, &end);
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
    b->rounds = keel_calloc(1, sizeof *b->rounds);
    if (!b->rounds) return KEEL_ENOMEM;
    keel_rounds_plan(b->rounds, l, b->rows);
    if (l->shards)
        return keel_process_nodes_make(&b->gradient_nodes, l, keel_lanes_shards(l, b->rows));
    return one_each(&b->gradient_nodes, l, b->rows);
}

void keel_across_unbind(keel_bound *b)
{
    keel_process_nodes_free(&b->gradient_nodes);
    keel_free(b->rounds);
    b->rounds = NULL;
}

/* ---- made and ended -------------------------------------------------------------------------- */

static keel_status allocate(keel_across *x, const keel_program *p)
{
    const int64_t nodes = keel_rounds_room(x->lanes, p->options.max_rows);
    int64_t longest = 0, sums = 0;
    for (int i = 0; i < p->graph->n_node; i++) {
        const keel_node *d = &p->graph->node[i].node;
        if (d->partial + 1 > longest) longest = d->partial + 1;
        if (d->partial_backward + 1 > longest) longest = d->partial_backward + 1;
        if (d->sums + 1 > sums) sums = d->sums + 1;
    }
    /* of so many doubles keel_records_place has places for 64 */
    x->sums_length = p->sums_doubles / p->slots;
    x->record_doubles = nodes * longest;
    x->sums_doubles = nodes * x->sums_length;
    x->temporary_doubles = (KEEL_TREE_NODES_MAX + 2) * sums;
    x->at = keel_calloc((size_t)x->lanes->n_process, sizeof *x->at);
    x->bytes = keel_calloc((size_t)x->lanes->n_process, sizeof *x->bytes);
    if (!x->at || !x->bytes) return KEEL_ENOMEM;
    if (p->options.dry) return KEEL_OK;
    x->records = keel_calloc((size_t)x->record_doubles + 1, sizeof *x->records);
    x->sums = keel_calloc((size_t)x->sums_doubles + 1, sizeof *x->sums);
    x->temporary = keel_calloc((size_t)x->temporary_doubles + 1, sizeof *x->temporary);
    if (!x->records || !x->sums || !x->temporary) return KEEL_ENOMEM;
    return keel_round_tables_make(&x->tables, x->lanes->n_process);
}

keel_status keel_across_create(keel_program *p)
{
    if (p->lanes->n_process == 1) return KEEL_OK;
    keel_across *x = p->across = keel_calloc(1, sizeof *x);
    if (!x) return KEEL_ENOMEM;
    x->comm = p->options.comm;
    x->lanes = p->lanes;
    if (p->graph->backward) KEEL_TRY(keel_buckets_create(p));
    KEEL_TRY(keel_across_make_carried(x, p));
    return allocate(x, p);
}

void keel_across_destroy(keel_across *x)
{
    if (!x) return;
    keel_free(x->at);
    keel_free(x->bytes);
    keel_round_tables_free(&x->tables);
    keel_free(x->records);
    keel_free(x->sums);
    keel_free(x->temporary);
    keel_buckets_destroy(x->buckets);
    keel_free(x->carried);
    keel_free(x);
}

/* ---- planned --------------------------------------------------------------------------------- */

int64_t keel_across_bytes(const keel_program *p)
{
    const keel_across *x = p->across;
    if (!x) return 0;
    const int64_t doubles = x->record_doubles + x->sums_doubles + x->temporary_doubles;
    return doubles * (int64_t)sizeof(double) + p->options.max_rows * x->carried_bytes +
           (x->buckets ? keel_buckets_memory(p) : 0);
}

/* Records that processes exchange while the program runs. */
static void add_records(const keel_program *p, const keel_rounds *r, keel_traffic *out)
{
    for (int g = 0; g < p->schedule.n_segment; g++) {
        const keel_segment *s = &p->schedule.segment[g];
        if (s->merge < 0) continue;
        const keel_node *n = &p->graph->node[s->merge].node;
        const int64_t length = s->merge_backward ? n->partial_backward : n->partial;
        out->statistics += keel_rounds_sent(r) * (length + 1) * (int64_t)sizeof(double);
        out->exchanges += r->n;
    }
}

keel_status keel_across_traffic(const keel_program *p, int64_t rows, keel_traffic *out)
{
    const keel_across *x = p->across;
    *out = (keel_traffic){ 0 };
    if (!x) return KEEL_OK;
    /* before the step, and after the rows; on moving, and on having moved: train/sharded.c */
    const int agreements = x->buckets && p->options.shard_optimizer ? 4 : 2;
    const int64_t others = x->lanes->n_process - 1;
    keel_bound b = { .rows = rows };
    const keel_status s = keel_across_bind(&b, x->lanes);
    if (s >= 0) {
        int64_t first, end;
        keel_lanes_rows(x->lanes, rows, x->lanes->process, &first, &end);
        add_records(p, b.rounds, out);
        out->others = (keel_rounds_sent(b.rounds) * x->sums_length +
                       others * agreements * (KEEL_COMM_NUMBERS + 1)) *
                      (int64_t)sizeof(double);
        out->others += others * (end - first) * x->carried_bytes;
        out->exchanges += b.rounds->n + agreements + (x->carried_bytes > 0);
        if (x->buckets) {
            out->gradients = keel_buckets_bytes(p, &b);
            out->exchanges += keel_buckets_exchanges(p, &b);
        }
    }
    keel_across_unbind(&b);
    return s;
}
