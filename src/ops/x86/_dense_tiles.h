/* Weight gradients of dense in float32, tile by tile, and the update of the tile: the inner loop of
 * the owner of weights after the commit point.
 *
 * dW [n, K] = xt [n, B] dy [B, K], then, if asked: m = m keep - dW scale rate; w = w + m
 *
 * dy is packed once for all tiles of a weight that a worker makes, in panels as wide as a block of
 * sums. Often its rows are a power of two apart and share so few sets of the first-level cache that
 * a panel of them would not stay there. x is packed for each tile, ROWS channels next to each
 * other. Many rows are taken in chunks whose part of the copy stays in the second-level cache, and
 * sums go on in the gradient from chunk to chunk, with the same bits. Where the copy would be
 * large, dense.c reads dy in place. While a block is multiplied, the memory that the next block
 * writes is prefetched. A block is updated from registers, so that of one chunk the gradient is
 * never in memory. */
#ifndef KEEL_OPS_X86_DENSE_TILES_H
#define KEEL_OPS_X86_DENSE_TILES_H

enum {
    TILE_MOST = 4 * ROWS,
    CHUNK = 256,             /* rows, */
    CHUNK_BYTES = 512 << 10, /* or fewer, if this is less dy */
    KEPT_MOST = 2 << 20,
    LINE_FLOATS = 16
};

static inline void store_halves(float *low, float *high, vf x)
{
#ifdef __AVX512F__
    _mm256_storeu_ps(low, _mm512_castps512_ps256(x));
    _mm256_storeu_ps(high, _mm512_extractf32x8_ps(x, 1));
#else
    _mm_storeu_ps(low, _mm256_castps256_ps128(x));
    _mm_storeu_ps(high, _mm256_extractf128_ps(x, 1));
#endif
}

static inline int64_t kept_row(int64_t n_k)
{
    return (n_k + LANES - 1) / LANES * LANES;
}

static inline int64_t kept_bytes(int64_t rows, int64_t n_k)
{
    return rows * kept_row(n_k) * (int64_t)sizeof(float);
}

/* Rows of a chunk: all, if they fit. */
static inline int64_t chunk_of(int64_t n_k)
{
    const int64_t fit = CHUNK_BYTES / kept_bytes(1, n_k);
    return fit < 1 ? 1 : fit < CHUNK ? fit : CHUNK;
}

typedef struct tile {
    const keel_tile_call *call;
    int64_t rows, n_c, n_k; /* rows: of the chunk */
    bool begins, ends;      /* the chunk is the first, the last */
    const float *x, *dy;    /* packed: [rows][ROWS] of each block, [rows][a panel's columns] */
    float *grad;            /* of the tile's first element, like all pointers below */
    bool moves;
    keel_tile_move move;
    const float *prefetch[4];
    bool bad;
} tile;

/* What is prefetched while a block is multiplied. */
typedef struct tile_next {
    int64_t at;     /* the next block's place in all that will be written; its rows are n_k apart */
    const float *x; /* one line of each of n_x rows, n_c apart: those of the next tile */
    int64_t n_x;
} tile_next;

/* vectors is a constant at each call; the block has `rows` rows, and the last vector has the lanes
 * of `last`. at: the block's first element in the tile. */
INLINE void tile_block(tile *t, const float *x, const float *dy, int64_t at, int64_t rows,
                       const int vectors, vm last, tile_next next)
{
    const vm all = vm_first(LANES);
    vf sum[ROWS][VECTORS], w[VECTORS];
    EACH(r, ROWS)
        EACH(v, vectors) sum[r][v] = vf_zero();
    if (!t->begins) {
        EACH(r, ROWS)
            if (r < rows)
                EACH(v, vectors)
                    sum[r][v] = vf_load_some(v < vectors - 1 ? all : last,
                                             t->grad + at + r * t->n_k + v * LANES);
    }
    for (int64_t part = 0, j = 0; part < ROWS; part++) {
        const int64_t end = t->rows * (part + 1) / ROWS;
        for (int q = 0; t->ends && q < t->call->n_prefetch; q++)
            EACH(v, vectors) fetch_to_write(t->prefetch[q] + next.at + v * LANES);
        next.at += t->n_k;
        if (part < next.n_x) __builtin_prefetch(next.x + part * t->n_c, 0, 2);
        for (; j < end; j++, x += ROWS, dy += vectors * LANES) {
            EACH(v, vectors) w[v] = vf_load(dy + v * LANES);
            EACH(r, ROWS) {
                const vf a = vf_set(x[r]);
                EACH(v, vectors) sum[r][v] = vf_fma(a, w[v], sum[r][v]);
            }
        }
    }
#define MASK(v) ((v) < vectors - 1 ? all : last)
    if (t->moves && t->ends) {
        const vf keep = vf_set(t->move.keep), rate = vf_set(t->move.rate);
        const vf scale = vf_set(t->move.scale);
        EACH(r, ROWS) {
            float *to = t->move.w + at + r * t->n_k, *m = t->move.m + at + r * t->n_k;
            if (r < rows)
                EACH(v, vectors) {
                    /* both are read before one is written, because both lie at the same place of
                     * their pages */
                    const vf was = vf_load_some(MASK(v), to + v * LANES);
                    const vf kept = vf_rounded(vf_mul(vf_load_some(MASK(v), m + v * LANES), keep));
                    const vf step = vf_rounded(vf_mul(vf_mul(sum[r][v], scale), rate));
                    const vf by = vf_sub(kept, step);
                    vf_store_some(MASK(v), m + v * LANES, by);
                    vf_store_some(MASK(v), to + v * LANES, vf_add(was, by));
                }
        }
        return;
    }
    EACH(r, ROWS) {
        float *to = t->grad + at + r * t->n_k;
        if (r < rows)
            EACH(v, vectors) {
                vf_store_some(MASK(v), to + v * LANES, sum[r][v]);
                if (t->call->checked && t->ends) t->bad |= not_finite(sum[r][v]);
            }
    }
#undef MASK
}

/* The part of x that is prefetched next: `lines` lines of each row, from channel `first` on. */
typedef struct tile_ahead {
    int span, lines, line;
    int64_t row, first;
} tile_ahead;

static inline void ask_for_x(const tile *t, tile_ahead *s, tile_next *next)
{
    const keel_tile_call *c = t->call;
    if (s->span >= c->n_span) return;
    const int64_t left = c->span[s->span].rows - s->row;
    next->x =
        (const float *)c->span[s->span].in + s->row * t->n_c + s->first + s->line * LINE_FLOATS;
    next->n_x = left < ROWS ? left : ROWS;
    s->row += next->n_x;
    if (s->row < c->span[s->span].rows) return;
    s->row = 0;
    if (++s->line < s->lines) return;
    s->line = 0;
    s->span++;
}

/* A row of blocks. In this order, what is written and what is prefetched are in different sets of
 * the first-level cache, although they are rows far apart in two arrays that are placed alike. */
static void tile_row(tile *t, int64_t i, int64_t n, tile_ahead *prefetch)
{
    const vm all = vm_first(LANES);
    const float *x = t->x + i * t->rows;
    for (int64_t k = 0; k < t->n_k; k += PANEL) {
        const int64_t left = t->n_k - k, at = i * t->n_k + k;
        const float *dy = t->dy + k * t->rows;
        tile_next next = { .at = left > PANEL ? at + PANEL : (i + ROWS) * t->n_k };
        ask_for_x(t, prefetch, &next);
        if (left >= PANEL)
            tile_block(t, x, dy, at, n, 3, all, next);
        else if (left > 2 * LANES)
            tile_block(t, x, dy, at, n, 3, vm_first(left - 2 * LANES), next);
        else if (left > LANES)
            tile_block(t, x, dy, at, n, 2, vm_first(left - LANES), next);
        else
            tile_block(t, x, dy, at, n, 1, vm_first(left), next);
    }
}

/* Rows [first, first + rows) of dy. */
static void pack_dy(const keel_tile_call *c, int64_t n_k, int64_t first, int64_t rows, float *to)
{
    for (int64_t k = 0; k < n_k; k += PANEL) {
        const int64_t width = n_k - k < PANEL ? n_k - k : PANEL;
        int64_t skip = first, left = rows;
        for (int s = 0; s < c->n_span && left > 0; s++) {
            const int64_t end = skip + left < c->span[s].rows ? skip + left : c->span[s].rows;
            const float *dy = (const float *)c->span[s].out_grad + skip * n_k + k;
            for (; skip < end; skip++, left--, dy += n_k)
                for (int64_t j = 0; j < width; j += LANES, to += LANES)
                    vf_store(to, vf_load_some(vm_first(width - j), dy + j));
            skip -= c->span[s].rows;
            if (skip < 0) skip = 0;
        }
    }
}

/* Packs n channels of x from `channel` on, of rows [first, first + rows), as blocks of ROWS
 * channels, two blocks in a vector; channels after the last are zeros. */
static void pack_x(const keel_tile_call *c, int64_t n_c, int64_t first, int64_t rows,
                   int64_t channel, int64_t n, float *to)
{
    _Static_assert(2 * ROWS == LANES, "a vector is two blocks of channels");
    for (int64_t j = 0; j < n; j += LANES) {
        const vm some = vm_first(n - j);
        float *low = to + j * rows, *high = low + ROWS * rows;
        int64_t skip = first, left = rows;
        for (int s = 0; s < c->n_span && left > 0; s++) {
            const int64_t end = skip + left < c->span[s].rows ? skip + left : c->span[s].rows;
            const float *x = (const float *)c->span[s].in + skip * n_c + channel + j;
            for (; skip < end; skip++, left--, x += n_c, low += ROWS, high += ROWS)
                store_halves(low, high, vf_load_some(some, x));
            skip -= c->span[s].rows;
            if (skip < 0) skip = 0;
        }
    }
}

/* Whether this way is used for these rows. */
static bool tiles(const keel_tile_call *c)
{
    _Alignas(64) float x[CHUNK * TILE_MOST];
    const int64_t n_c = c->node->weight[0].shape.dim[0], n_k = c->node->weight[0].shape.dim[1];
    const int64_t n = c->count / n_k, first = c->first / n_k, chunk = chunk_of(n_k);
    tile t = { .call = c, .n_c = n_c, .n_k = n_k, .x = x };
    int64_t rows = 0;
    for (int s = 0; s < c->n_span; s++) rows += c->span[s].rows;
    if (!c->scratch || kept_bytes(rows, n_k) > KEPT_MOST) return false;
    for (int64_t at = 0; at < rows && !c->scratch_ready; at += chunk)
        pack_dy(c, n_k, at, rows - at < chunk ? rows - at : chunk,
                (float *)c->scratch + at * kept_row(n_k));
    /* rows shorter than a block share lines, and each would wait for the one before it */
    t.moves = c->move && n_k >= PANEL;
    for (int64_t i = 0; i < n; i += TILE_MOST) {
        const int64_t some = n - i < TILE_MOST ? n - i : TILE_MOST;
        tile_ahead prefetch = { .lines = TILE_MOST / LINE_FLOATS, .first = first + i + some };
        for (int q = 0; q < c->n_prefetch; q++)
            t.prefetch[q] = (const float *)c->prefetch[q] + i * n_k;
        if (t.moves) {
            t.move = *c->move;
            t.move.w += i * n_k;
            t.move.m += i * n_k;
        }
        t.grad = (float *)c->grad + i * n_k;
        for (int64_t at = 0; at < rows; at += chunk) {
            t.rows = rows - at < chunk ? rows - at : chunk;
            t.dy = (const float *)c->scratch + at * kept_row(n_k);
            t.begins = at == 0;
            t.ends = at + chunk >= rows;
            pack_x(c, n_c, at, t.rows, first + i, some, x);
            for (int64_t r = 0; r < some; r += ROWS) tile_row(&t, r, some - r, &prefetch);
        }
    }
    if (c->checked) {
        *c->checked = true;
        *c->bad = t.bad;
    }
    if (t.moves) c->move->moved = true;
    return true;
}

#endif
