/* See buckets.h. How tiles become buckets, and what buckets cost in bytes, exchanges and memory.
 * How they move in a step: buckets_run.c. */
#include "base/memory.h"
#include "graph/across.h"
#include "graph/buckets.h"

/* ---- made and ended -------------------------------------------------------------------------- */

static keel_status measure_nodes(keel_buckets *x, const keel_lanes *l)
{
    x->own_most = 1;
    x->all_most = l->n_process;
    for (int64_t n = 1; n <= l->shards; n++) {
        keel_process_nodes nodes;
        const keel_status s = keel_process_nodes_make(&nodes, l, n);
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

/* Nearly equal parts of whole tiles. A tile that lies in several parts belongs to the one in which
 * a certain point of it lies. Each bucket has its own point, by the number of tiles before it, so
 * that buckets of fewer tiles than processes go to all processes in turn. */
static void divide(const keel_buckets *x, keel_bucket *k, int n_process)
{
    const keel_tile *last = &x->tile[k->end - 1];
    const int64_t begin = x->tile[k->begin].offset, end = last->offset + last->count;
    const int64_t turn = 2 * (k->begin % n_process) + 1;
    int q = 0;
    for (const keel_tile *t = &x->tile[k->begin]; t < &x->tile[k->end]; t++) {
        const int64_t at = t->offset - begin + t->count * turn / (2 * n_process);
        for (; q < n_process && at >= (end - begin) / n_process * q; q++)
            k->first[q] = q ? t->offset : begin;
    }
    while (q <= n_process) k->first[q++] = end;
}

static keel_status make_bucket(keel_buckets *x, keel_bucket *k, const keel_program *p,
                               const int *segment)
{
    const size_t n = (size_t)p->lanes->n_process;
    k->first = keel_calloc(n + 1, sizeof *k->first);
    k->send = keel_calloc(n, sizeof *k->send);
    k->receive = keel_calloc(n, sizeof *k->receive);
    k->send_bytes = keel_calloc(n, sizeof *k->send_bytes);
    k->receive_bytes = keel_calloc(n, sizeof *k->receive_bytes);
    if (!k->first || !k->send || !k->receive || !k->send_bytes || !k->receive_bytes)
        return KEEL_ENOMEM;
    for (int i = k->begin; i < k->end; i++)
        if (segment[x->tile[i].variable] > k->segment) k->segment = segment[x->tile[i].variable];
    divide(x, k, p->lanes->n_process);
    x->own_part += keel_bucket_part(p, k);
    if (p->options.dry) return KEEL_OK;
    k->received = keel_aligned_calloc((size_t)x->all_most * (size_t)keel_bucket_part(p, k) + 1,
                                      (size_t)x->element);
    return k->received ? KEEL_OK : KEEL_ENOMEM;
}

/* Buckets of whole tiles, each at least as large as the connection likes. */
static keel_status make_buckets(keel_buckets *x, const keel_program *p)
{
    const keel_comm *c = p->options.comm; /* NULL: planned, for a connection that is not known */
    int64_t least = (c ? c->bucket_bytes : KEEL_BUCKET_LEAST) / x->element, n = 0;
    int *segment = keel_calloc((size_t)p->store->n_weight, sizeof *segment);
    keel_status s = segment ? KEEL_OK : KEEL_ENOMEM;
    if (least < p->n_grad / KEEL_BUCKETS_MAX + 1) least = p->n_grad / KEEL_BUCKETS_MAX + 1;
    if (s >= 0) keel_gradients_segments(p, segment);
    for (int i = 0, begin = 0; i < x->n_tile && s >= 0; i++) {
        n += x->tile[i].count;
        if (n < least && i + 1 < x->n_tile) continue;
        keel_bucket *k = &x->bucket[x->n++];
        k->begin = begin;
        k->end = begin = i + 1;
        s = make_bucket(x, k, p, segment);
        n = 0;
    }
    keel_free(segment);
    return s;
}

keel_status keel_buckets_create(keel_program *p)
{
    keel_buckets *x = p->across->buckets = keel_calloc(1, sizeof *x);
    if (!x) return KEEL_ENOMEM;
    x->bucket = keel_calloc(KEEL_BUCKETS_MAX, sizeof *x->bucket);
    x->cursor = keel_aligned_calloc((size_t)p->lanes->n_worker, sizeof *x->cursor);
    if (!x->bucket || !x->cursor) return KEEL_ENOMEM;
    x->element = p->options.compress ? (int64_t)sizeof(keel_bf16) : keel_bucket_element(p);
    KEEL_TRY(measure_nodes(x, p->lanes));
    KEEL_TRY(keel_store_tiles(p->store, p->trains, &x->tile, &x->n_tile));
    KEEL_TRY(make_buckets(x, p));
    if (p->options.compress) KEEL_TRY(keel_compressed_create(x, p));
    if (p->options.dry || x->own_most == 1) return KEEL_OK;
    x->more = keel_aligned_calloc((size_t)(x->own_most - 1) * (size_t)p->n_grad + 1,
                                  (size_t)keel_bucket_element(p));
    return x->more ? KEEL_OK : KEEL_ENOMEM;
}

void keel_buckets_destroy(keel_buckets *x)
{
    if (!x) return;
    for (int i = 0; x->bucket && i < KEEL_BUCKETS_MAX; i++) {
        keel_bucket *k = &x->bucket[i];
        keel_free(k->first);
        keel_free(k->received);
        keel_free(k->send);
        keel_free(k->receive);
        keel_free(k->send_bytes);
        keel_free(k->receive_bytes);
    }
    keel_free(x->bucket);
    keel_free(x->cursor);
    keel_free(x->tile);
    keel_free(x->more);
    keel_free(x->narrow);
    keel_free(x->sum);
    keel_free(x);
}

/* ---- planned --------------------------------------------------------------------------------- */

int keel_bucket_rounds(const keel_process_nodes *x)
{
    int most = 0;
    for (int i = 0; i < x->n; i++)
        if (x->node[i].slot >= most) most = x->node[i].slot + 1;
    return most;
}

int keel_buckets_exchanges(const keel_program *p, const keel_bound *b)
{
    return p->across->buckets->n * (keel_bucket_rounds(&b->gradient_nodes) + 1);
}

int64_t keel_buckets_bytes(const keel_program *p, const keel_bound *b)
{
    const keel_buckets *x = p->across->buckets;
    const int n = p->lanes->n_process;
    const int64_t nodes = keel_nodes_of(&b->gradient_nodes, p->lanes->process);
    const int64_t shared = p->options.shard_optimizer ? keel_bucket_element(p) : x->element;
    int64_t sent = 0;
    for (const keel_bucket *k = x->bucket; k < x->bucket + x->n; k++) {
        const int64_t all = k->first[n] - k->first[0], part = keel_bucket_part(p, k);
        sent += nodes * (all - part) * x->element + (n - 1) * part * shared;
    }
    return sent;
}

int64_t keel_buckets_memory(const keel_program *p)
{
    const keel_buckets *x = p->across->buckets;
    const int64_t narrow = p->options.compress ? p->n_grad * x->element : 0;
    return x->all_most * x->own_part * x->element +
           (x->own_most - 1) * p->n_grad * keel_bucket_element(p) + narrow +
           x->sum_count * (int64_t)sizeof *x->sum;
}
