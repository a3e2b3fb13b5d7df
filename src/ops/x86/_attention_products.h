/* The scratch of attention, which queries of a block see which keys, and the products that a block
 * makes: a part of dot_product_attention.c. */
#ifndef KEEL_OPS_X86_ATTENTION_PRODUCTS_H
#define KEEL_OPS_X86_ATTENTION_PRODUCTS_H
#include "ops/dot_product_attention.h"
#include "ops/x86/_rounded.h"
#include "ops/x86/_product.h"
#include "ops/x86/_scratch.h"
#include "ops/x86/_turn.h"

enum { QUERIES = 48, KEYS = 512, KEYS_LEAST = 128 };
enum { KEYS_NUMBERS = 32768 /* of a block of keys or values, which stay in a cache */ };
enum { PACKED_STEP = 32 /* keys of a product whose queries differ, as it packs them */ };

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

/* An odd number of cache lines: rows that begin in few sets of a cache would drive each other out.
 */
static int64_t row_of_scores(int64_t keys)
{
    return (up(keys, PANEL) / 16 | 1) * 16;
}

/* How many keys backward takes at once: a whole line if it may. Only then sum(y g) is of an exact
 * y, not of one that was rounded to its type. */
static int64_t keys_at_once(const keel_attention_dims *d, int64_t panel)
{
    const int64_t wide = up(d->d > d->v ? d->d : d->v, LANES);
    const int64_t fit = KEYS_NUMBERS / wide / panel * panel;
    const int64_t most = least(KEYS, fit > KEYS_LEAST ? fit : KEYS_LEAST);
    const int64_t blocks = (d->s + most - 1) / most;
    return up((d->s + blocks - 1) / blocks, panel);
}

/* D and V are those of the dims, widened to whole vectors. */
typedef struct room {
    int64_t d, v;
    int64_t keys;  /* of a block of keys in backward */
    float *q;      /* [QUERIES, D] a block of queries, scaled */
    int64_t x_row; /* how far apart rows of scores lie */
    float *x;      /* [QUERIES, x_row] scores, then weights */
    float *k;      /* forward: [panel, D] keys to be turned; backward: [keys, D] */
    float *kt;     /* panels [D, panel] of keys; forward: of all */
    float *v_in;   /* forward: all, panels [S, columns]; backward: [keys, V] to be turned */
    int64_t panel, columns; /* of keys; of values in forward */
    uint8_t *kept;          /* of a line: what dropout keeps */
    float *y;               /* [QUERIES, V] forward: the output; backward: its gradient */
    /* backward */
    float *vt, *dk, *dv, *dx; /* as kt, k, v_in, x */
    float *dq;                /* [group, T, D] of all heads that share a key */
    float *w;                 /* [keys] weights of a line before dropout */
    float *mean;              /* [group, T] sum(y g) */
    float *all;               /* [V] the gradient of every value, from queries that see none */
    /* by rounded products */
    const keel_rounded *by; /* NULL: in float32 */
    uint32_t *lines;        /* packed: forward all values, backward [keys, D] keys */
    void *product;          /* room of a product */
} room;

static int64_t product_words(const keel_rounded *by, int64_t keys, int64_t width)
{
    const int64_t scores = by->words(width, QUERIES), weighs = by->words(keys, QUERIES);
    const int64_t adds = by->words(QUERIES, keys) + by->words(QUERIES, width);
    const int64_t most = scores > weighs ? scores : weighs;
    return adds > most ? adds : most;
}

static room room_in(floats *f, const keel_node *n, const keel_attention_dims *d, bool backward)
{
    const keel_rounded *by = keel_rounded_of(n);
    const int64_t panel = by ? ROUNDED_PANEL : PANEL;
    const int64_t keys = backward ? keys_at_once(d, panel) : up(d->s, panel);
    const int64_t group = d->heads / d->shared;
    room r = { .keys = keys,
               .d = up(d->d, LANES),
               .v = up(d->v, LANES),
               .x_row = row_of_scores(keys),
               .panel = panel,
               .by = by };
    r.columns = by ? r.v : PANEL;
    if (by) {
        const int64_t wide = r.v > r.d ? r.v : r.d;
        r.lines = (uint32_t *)take(f, by->words(keys, backward ? r.d : r.v));
        r.product = take(f, product_words(by, keys, wide));
    }
    r.q = take(f, QUERIES * r.d);
    r.x = take(f, QUERIES * r.x_row);
    r.k = take(f, (backward ? keys : panel) * r.d);
    r.kt = take(f, keys * r.d);
    r.v_in = take(f, keys * r.v);
    r.kept = (uint8_t *)take(f, keys);
    r.y = take(f, QUERIES * r.v);
    if (!backward) return r;
    r.vt = take(f, keys * r.v);
    r.dk = take(f, keys * r.d);
    r.dv = take(f, keys * r.v);
    r.dx = take(f, QUERIES * r.x_row);
    r.w = take(f, keys);
    r.dq = take(f, group * d->t * r.d);
    r.mean = take(f, group * d->t);
    r.all = take(f, r.v);
    return r;
}

static void clear(float *to, int64_t n)
{
    if (n > 0) memset(to, 0, (size_t)n * sizeof *to);
}

/* Panels [width, r->panel] of lines [n, width]; lines that are not there are zeros. */
static void turn(const room *r, float *to, float *from, int64_t n, int64_t width)
{
    if (r->by) {
        r->by->pack_transpose((uint32_t *)to, from, width, width, n);
        return;
    }
    clear(from + n * width, (up(n, PANEL) - n) * width);
    for (int64_t j = 0; j < n; j += PANEL)
        for (int64_t i = 0; i < PANEL; i += 8)
            for (int64_t e = 0; e < width; e += 8)
                turn_eight(to + j * width + e * PANEL + i, PANEL, from + (j + i) * width + e,
                           width);
}

/* Scores of n queries from t on with `keys` keys from j on. Query i may see those of [first[i],
 * end[i]), counted from j, as far as masks let it; both grow with i. */
typedef struct query_block {
    int64_t row, head; /* head: of all in a row, outer heads */
    int64_t t, n, j, keys;
    int64_t first[QUERIES], end[QUERIES];
} query_block;

/* Whether there is anything to see. */
static bool look(const keel_node *node, const keel_attention_dims *d, query_block *b)
{
    const keel_dot_product_attention_args *a = node->args;
    for (int64_t i = 0; i < b->n; i++) {
        int64_t first = 0, end = d->s;
        if (!(a->less > 0)) keel_seen_range(&a->seen, b->t + i, d->s, &first, &end);
        b->first[i] = least(first > b->j ? first - b->j : 0, b->keys);
        b->end[i] = least(end > b->j ? end - b->j : 0, b->keys);
    }
    return b->first[0] < b->end[b->n - 1];
}

/* The queries [*first, *end) that may see a key of [j, end_j). */
static void queries_of(const query_block *b, int64_t j, int64_t end_j, int64_t *first, int64_t *end)
{
    int64_t i = 0, n = b->n;
    while (i < n && b->end[i] <= j) i++;
    while (n > i && b->first[n - 1] >= end_j) n--;
    *first = i;
    *end = n;
}

/* Rows that one product takes: few where ranges of a block differ. */
static int64_t step_of(const query_block *b, int64_t rows)
{
    const int64_t last = b->n - 1;
    return b->first[0] == b->first[last] && b->end[0] == b->end[last] ? rows : PRODUCT_ROWS;
}

/* out [n, x_row] = p [n, width] times panels; both have `wide` elements where width are used. */
static void make_scores(const room *r, const query_block *b, const float *p, const float *panels,
                        int64_t width, int64_t wide, float *out)
{
    const int64_t all = up(b->keys, r->panel), alike = step_of(b, all);
    const int64_t panel = r->by && alike == all ? all : r->panel;
    for (int64_t j = b->first[0] / panel * panel; j < b->end[b->n - 1]; j += panel) {
        int64_t i, end;
        queries_of(b, j, j + panel, &i, &end);
        if (r->by) {
            const keel_rounded_product d = { .a = p + i * wide,
                                             .a_row = wide,
                                             .n = end - i,
                                             .lines = wide,
                                             .columns = least(panel, b->keys - j),
                                             .out = out + i * r->x_row + j,
                                             .out_row = r->x_row,
                                             .room = r->product };
            r->by->multiply(&d, (const uint32_t *)panels + r->by->words(wide, j), NULL);
            continue;
        }
        multiply(&(product){ .p = p + i * wide,
                             .q = panels + j * wide,
                             .p_row = wide,
                             .p_step = 1,
                             .q_row = PANEL,
                             .inner = width,
                             .rows = end - i,
                             .columns = PANEL,
                             .out = out + i * r->x_row + j,
                             .out_row = r->x_row });
    }
}

/* The first line that is multiplied where `first` is the first that counts. */
static int64_t from_whole(const room *r, int64_t first)
{
    return r->by ? first / r->by->together * r->by->together : first;
}

/* out [n, wide] (+)= x [n, x_row] q, of the keys that are seen; rows of q lie `wide` apart, or are
 * packed. */
static void weigh_keys(const room *r, const query_block *b, const float *x, const void *q,
                       int64_t wide, float *out, int64_t out_row, bool adds)
{
    const int64_t step = step_of(b, b->n);
    for (int64_t i = 0; i < b->n; i += step) {
        const int64_t rows = least(step, b->n - i), end = b->end[i + rows - 1];
        const int64_t j = from_whole(r, b->first[i]);
        if (r->by) {
            const keel_rounded_product d = { .a = x + i * r->x_row + j,
                                             .a_row = r->x_row,
                                             .n = rows,
                                             .lines = end - j,
                                             .first = j,
                                             .all = b->keys,
                                             .columns = wide,
                                             .out = out + i * out_row,
                                             .out_row = out_row,
                                             .adds = adds,
                                             .room = r->product };
            r->by->multiply(&d, q, NULL);
            continue;
        }
        multiply(&(product){ .p = x + i * r->x_row + j,
                             .q = (const float *)q + j * wide,
                             .p_row = r->x_row,
                             .p_step = 1,
                             .q_row = wide,
                             .inner = end - j,
                             .rows = rows,
                             .columns = wide,
                             .out = out + i * out_row,
                             .out_row = out_row,
                             .adds = adds });
    }
}

/* out [keys, wide] += x^T p [n, wide], of the queries that see. */
static void add_queries(const room *r, const query_block *b, const float *x, const float *p,
                        int64_t wide, float *out)
{
    const int64_t first = b->first[0], keys = b->end[b->n - 1], alike = step_of(b, keys - first);
    const int64_t step = r->by && alike < PACKED_STEP ? PACKED_STEP : alike;
    for (int64_t j = first; j < keys; j += step) {
        const int64_t rows = least(step, keys - j);
        int64_t i, end;
        queries_of(b, j, j + rows, &i, &end);
        if (r->by) {
            const keel_rounded_product d = { .a = x + i * r->x_row + j,
                                             .a_row = r->x_row,
                                             .n = rows,
                                             .lines = end - i,
                                             .columns = wide,
                                             .out = out + j * wide,
                                             .out_row = wide,
                                             .adds = true,
                                             .room = r->product };
            r->by->multiply_lines(&d, p + i * wide, wide);
            continue;
        }
        multiply(&(product){ .p = x + i * r->x_row + j,
                             .q = p + i * wide,
                             .p_row = 1,
                             .p_step = r->x_row,
                             .q_row = wide,
                             .inner = end - i,
                             .rows = rows,
                             .columns = wide,
                             .out = out + j * wide,
                             .out_row = wide,
                             .adds = true });
    }
}

/* Zeros beside what query i sees, as far as other queries of the block see, and from the first line
 * on that is multiplied. */
static void clear_beside(const room *r, const query_block *b, int64_t i, float *x)
{
    const int64_t first = from_whole(r, b->first[0]);
    clear(x + first, b->first[i] - first);
    clear(x + b->end[i], b->end[b->n - 1] - b->end[i]);
}

#endif
