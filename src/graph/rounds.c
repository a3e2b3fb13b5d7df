/* See rounds.h. Blocks of a round differ by at most one process. Process i of a block gets the
 * nodes of another block from its process i, or from its last one if it has no such. */
#include "graph/rounds.h"
#include "base/memory.h"
#include <string.h>

_Static_assert(1 << 3 * KEEL_ROUNDS_MAX >= KEEL_PROCESSES_MAX && KEEL_ROUND_BLOCKS == 1 << 3,
               "so many rounds join all processes");
_Static_assert(KEEL_TREE_LEVELS_MAX < UINT8_MAX, "closes are bytes");

/* ---- planned --------------------------------------------------------------------------------- */

/* Consecutive processes that the blocks of a round make up. */
typedef struct span {
    int first, end;
} span;

static int64_t power(int64_t base, int exponent)
{
    int64_t x = 1;
    while (exponent-- > 0) x *= base;
    return x;
}

/* A power of two, so that the rows of blocks are nodes of the tree if those of processes are. */
static int blocks_of(span s)
{
    const int n = s.end - s.first;
    int rounds = 1, blocks = 2;
    while (power(KEEL_ROUND_BLOCKS, rounds) < n) rounds++;
    while (power(blocks, rounds) < n) blocks *= 2;
    return blocks < n ? blocks : n;
}

static span block_of(span s, int i)
{
    const int n = blocks_of(s);
    return (span){ s.first + (int)keel_cut_first(s.end - s.first, n, i),
                   s.first + (int)keel_cut_first(s.end - s.first, n, i + 1) };
}

static void meet(keel_round *r, int process)
{
    for (int i = 0; i < r->n_with; i++)
        if (r->with[i] == process) return;
    r->with[r->n_with++] = process;
}

/* Who sends to whom. Begins behind the own block, so that not all send to the same one first. */
static void find_partners(keel_round *r, span all, int me)
{
    const span own = block_of(all, r->own);
    const int at = me - own.first, n_own = own.end - own.first;
    r->from[r->own] = me;
    for (int k = 1; k < r->n_block; k++) {
        const int i = (r->own + k) % r->n_block;
        const span b = block_of(all, i);
        const int n = b.end - b.first;
        r->from[i] = b.first + (at < n ? at : n - 1);
        if (at < n) r->to[r->n_to++] = b.first + at;
        if (at == n_own - 1 && n > n_own) r->to[r->n_to++] = b.end - 1;
        meet(r, r->from[i]);
    }
    for (int i = 0; i < r->n_to; i++) meet(r, r->to[i]);
}

static void find_nodes(keel_round *r, span all, const keel_lanes *l, int64_t rows)
{
    int64_t begin, end, at, ignored;
    int n = 0;
    keel_lanes_rows(l, rows, all.first, &begin, &ignored);
    keel_lanes_rows(l, rows, all.end - 1, &ignored, &end);
    for (int i = 0; i < r->n_block; i++) {
        const span b = block_of(all, i);
        const int before = n;
        int64_t stop, next;
        keel_lanes_rows(l, rows, b.first, &at, &ignored);
        keel_lanes_rows(l, rows, b.end - 1, &ignored, &stop);
        for (; at < stop; at = next) {
            next = keel_tree_next(rows, at, stop);
            r->closes[n++] = (uint8_t)keel_tree_closes(rows, at, next, begin, end, true);
        }
        r->nodes[i] = n - before;
    }
}

void keel_rounds_plan(keel_rounds *out, const keel_lanes *l, int64_t rows)
{
    span span_of[KEEL_ROUNDS_MAX], s = { 0, l->n_process };
    *out = (keel_rounds){ 0 };
    for (; s.end - s.first > 1; out->n++) {
        keel_round *r = &out->round[out->n];
        span_of[out->n] = s;
        r->n_block = blocks_of(s);
        while (block_of(s, r->own).end <= l->process) r->own++;
        s = block_of(s, r->own);
    }
    for (int i = 0; i < out->n / 2; i++) { /* the smallest blocks join first */
        const keel_round r = out->round[i];
        const span of = span_of[i];
        out->round[i] = out->round[out->n - 1 - i];
        out->round[out->n - 1 - i] = r;
        span_of[i] = span_of[out->n - 1 - i];
        span_of[out->n - 1 - i] = of;
    }
    for (int i = 0; i < out->n; i++) {
        find_partners(&out->round[i], span_of[i], l->process);
        find_nodes(&out->round[i], span_of[i], l, rows);
    }
}

int64_t keel_rounds_sent(const keel_rounds *r)
{
    int64_t sent = 0;
    for (const keel_round *x = r->round; x < r->round + r->n; x++)
        sent += (int64_t)x->n_to * x->nodes[x->own];
    return sent;
}

int64_t keel_rounds_room(const keel_lanes *l, int64_t max_rows)
{
    const int blocks = l->n_process < KEEL_ROUND_BLOCKS ? l->n_process : KEEL_ROUND_BLOCKS;
    return blocks * (int64_t)keel_tree_nodes(max_rows);
}

/* ---- run ------------------------------------------------------------------------------------- */

keel_status keel_round_tables_make(keel_round_tables *x, int n_process)
{
    const size_t n = (size_t)n_process;
    x->send = keel_calloc(n, sizeof *x->send);
    x->receive = keel_calloc(n, sizeof *x->receive);
    x->send_bytes = keel_calloc(n, sizeof *x->send_bytes);
    x->receive_bytes = keel_calloc(n, sizeof *x->receive_bytes);
    return x->send && x->receive && x->send_bytes && x->receive_bytes ? KEEL_OK : KEEL_ENOMEM;
}

void keel_round_tables_free(keel_round_tables *x)
{
    keel_free(x->send);
    keel_free(x->receive);
    keel_free(x->send_bytes);
    keel_free(x->receive_bytes);
    *x = (keel_round_tables){ 0 };
}

static keel_status start(const keel_rounds_way *w)
{
    const keel_round *r = &w->rounds->round[w->at];
    const keel_round_tables *x = w->tables;
    const size_t each = (size_t)w->length * sizeof *w->node;
    double *node = w->node, *own = node;
    for (int i = 0; i < r->n_block; i++, node += r->nodes[i - 1] * w->length) {
        x->receive[r->from[i]] = node;
        x->receive_bytes[r->from[i]] = i == r->own ? 0 : (size_t)r->nodes[i] * each;
        if (i == r->own) own = memmove(node, own, (size_t)r->nodes[i] * each);
    }
    for (int i = 0; i < r->n_to; i++) {
        x->send[r->to[i]] = own;
        x->send_bytes[r->to[i]] = (size_t)r->nodes[r->own] * each;
    }
    return keel_comm_start(w->comm, KEEL_EXCHANGE_RECORDS,
                           &(keel_exchange){ x->send, x->send_bytes, x->receive, x->receive_bytes,
                                             r->with, r->n_with });
}

/* The nodes of all blocks are here: joins them to those of the block that they make up. */
static void join_all(const keel_rounds_way *w)
{
    const keel_round *r = &w->rounds->round[w->at];
    const int64_t length = w->length;
    double *node = w->node;
    int all = 0, n = 0;
    for (int i = 0; i < r->n_with; i++)
        w->tables->send_bytes[r->with[i]] = w->tables->receive_bytes[r->with[i]] = 0;
    for (int i = 0; i < r->n_block; i++) all += r->nodes[i];
    for (int i = 0; i < all; i++) { /* a stack of nodes, which is never above node i */
        if (n < i) memcpy(node + n * length, node + i * length, (size_t)length * sizeof *node);
        n++;
        for (int k = r->closes[i]; k > 0; k--, n--)
            w->join(w->context, node + (n - 2) * length, node + (n - 1) * length);
    }
}

/* Starts the next round, or ends them. */
static keel_status go_on(keel_rounds_way *w, keel_status s)
{
    if (s >= 0 && w->at < w->rounds->n) s = start(w);
    if (s < 0 || w->at == w->rounds->n) w->rounds = NULL;
    return s;
}

keel_status keel_rounds_begin(keel_rounds_way *w)
{
    w->at = 0;
    return go_on(w, KEEL_OK);
}

static keel_status end_round(keel_rounds_way *w, keel_status s)
{
    if (s >= 0) {
        join_all(w);
        w->at++;
    }
    return go_on(w, s);
}

keel_status keel_rounds_look(keel_rounds_way *w)
{
    while (w->rounds) {
        bool done = false;
        const keel_status s = keel_comm_test(w->comm, KEEL_EXCHANGE_RECORDS, &done);
        if (s >= 0 && !done) return KEEL_OK;
        KEEL_TRY(end_round(w, s));
    }
    return KEEL_OK;
}

keel_status keel_rounds_end(keel_rounds_way *w)
{
    while (w->rounds) KEEL_TRY(end_round(w, keel_comm_wait(w->comm, KEEL_EXCHANGE_RECORDS)));
    return KEEL_OK;
}

keel_status keel_rounds_run(const keel_rounds *r, keel_comm *c, const keel_round_tables *x,
                            double *node, int64_t length, keel_node_join join, const void *context)
{
    keel_rounds_way w = { r, c, x, node, length, join, context };
    KEEL_TRY(keel_rounds_begin(&w));
    return keel_rounds_end(&w);
}
