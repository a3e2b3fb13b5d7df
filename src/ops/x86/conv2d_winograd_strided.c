/* conv2d with 3x3 windows that move by 2x2, by Winograd's F(2, 2) on every other pixel: 25 products
 * for each 2x2 tile of outputs instead of 36. _winograd_strided.h has the formulas; for each M the
 * sum over its terms and over channels is one matrix product.
 *
 *     forward   M[m] = sum of V[v] U[u], V from 5x5 pixels of x, y 2x2 from M
 *     backward  the same from 3x3 pixels of dy to 4x4 of dx
 *     weights   dU[u] = sum of V[v] dM[m] over terms, tiles and rows
 *
 * Transforms only add, so that the error is about that of the direct sum
 * (tests/test_conv_winograd.c bounds it).
 *
 * A block of tiles is transformed, multiplied and transformed back while it is in the cache.
 * Transformed values are stored as [point][channels / LANES][tile][LANES]: transforms store whole
 * cache lines, and for the products the tiles of a block are at constant distances. The sum of an
 * element runs over terms and channels only, so its bits do not depend on the block or on other
 * rows; a weight gradient is a sum of blocks of tiles, in order from the first row of the call.
 *
 * The file is long because the three passes share tiles, buffers and transforms, which must be
 * inlined with constants. A pixel that is not finite may turn other outputs of its tile into NaN,
 * which the direct sum would not; such a step is refused in any case. */
#include "base/memory.h"
#include "ops/x86/_winograd_strided.h"
#include "ops/x86/_winograd_vector.h"

enum { PIXELS = 25, SIDE = 4, TERMS_MOST = 9 };
enum { V_LINE = 5, M_LINE = 3 }; /* points of a line of V and of dM */
enum { AHEAD = 4 };              /* tiles */
/* Lines of a panel; up to 5 % faster where weights do not stay in the cache. */
enum { U_AHEAD = 8 };

/* U of three taps. */
INLINE void kernel_points(const vf g[3], vf u[SIDE])
{
    u[0] = g[0];
    u[1] = vf_add(g[0], g[2]);
    u[2] = g[2];
    u[3] = g[1];
}

INLINE void kernel_gradient_points(const vf u[SIDE], vf g[3])
{
    g[0] = vf_add(u[0], u[1]);
    g[1] = u[3];
    g[2] = vf_add(u[1], u[2]);
}

#include "ops/x86/_winograd_kernel.h"
#include "ops/x86/_winograd_weights.h"

KEEL_USES_OP(conv2d);

/* Run `body` with `x`, a constant, for the kind of a tile. */
#define WITH_KIND(kind, x, ...)                                                                    \
    do {                                                                                           \
        if ((kind) == 0) {                                                                         \
            enum { x = 0 };                                                                        \
            __VA_ARGS__;                                                                           \
        } else if ((kind) == 1) {                                                                  \
            enum { x = 1 };                                                                        \
            __VA_ARGS__;                                                                           \
        } else if ((kind) == 2) {                                                                  \
            enum { x = 2 };                                                                        \
            __VA_ARGS__;                                                                           \
        } else {                                                                                   \
            enum { x = 3 };                                                                        \
            __VA_ARGS__;                                                                           \
        }                                                                                          \
    } while (0)

/* Transforms ----------------------------------------------------------------------------------- */

/* Where the side x side pixels of a tile are; what is outside of the image is zero. */
INLINE void pixels_of(const strided *s, const float *in, const place *p, const float *zeros,
                      const float *at[], const int side)
{
    const axis *const down = &s->axis[0], *const across = &s->axis[1];
    const int64_t h = down->first + p->i * down->read, w = across->first + p->j * across->read;
    in += p->row * down->in * across->in * s->c;
    for (int i = 0; i < side; i++)
        for (int j = 0; j < side; j++) {
            const bool inside =
                (uint64_t)(h + i) < (uint64_t)down->in && (uint64_t)(w + j) < (uint64_t)across->in;
            at[side * i + j] = inside ? in + ((h + i) * across->in + w + j) * s->c : zeros;
        }
}

/* V of five pixels; a half has its first three. */
INLINE void input_points(const vf d[5], vf v[5], const bool half)
{
    v[0] = half ? d[0] : vf_sub(d[0], d[2]);
    v[2] = half ? d[2] : vf_sub(d[4], d[2]);
    v[1] = d[2];
    v[3] = d[1];
    v[4] = d[3];
}

INLINE void store_points(float *out, int64_t point, const vf v[5], const bool half)
{
    EACH(j, 5)
        if (!half || j == 0 || j == 2 || j == 3) vf_store(out + j * point, v[j]);
}

/* Line `line` of V: a line of the pixels, less the middle one where it is an end of a whole tile.
 * ahead: how far off the pixel is that is prefetched. */
INLINE void input_line(const float *const at[PIXELS], int64_t c, vm m, int64_t ahead, float *out,
                       int64_t point, const int line, const int kind)
{
    static const int rows[] = { 0, 2, 4, 1, 3 };
    const bool down = kind / 2, across = kind % 2;
    const int row = down && line == 2 ? 2 : rows[line];
    vf d[5], v[5];
    EACH(j, 5) {
        d[j] = vf_zero();
        if (across && j > 2) continue;
        if (j > 0)
            ask_for(at[5 * row + j] + c, ahead); /* the first was the last of the tile before */
        d[j] = vf_load_some(m, at[5 * row + j] + c);
        if (!down && (line == 0 || line == 2)) d[j] = vf_sub(d[j], vf_load_some(m, at[10 + j] + c));
    }
    input_points(d, v, across);
    store_points(out, point, v, across);
}

/* Lines 1 and 4 of V are those of whole tiles alone. */
INLINE bool has_line(int kind, int line)
{
    return kind < 2 || (line != 1 && line != 4);
}

/* All lines of V, or one, of channels [first, first + n). */
INLINE void input_tiles(const strided *s, const float *in, const block *b, int64_t first, int64_t n,
                        const float *zeros, const buffer *v, const int line, const int lines)
{
    for (walk w = walk_of(b); w.left; walk_on(s, &w)) {
        const float *at[PIXELS];
        float *out = v->data + w.slot * LANES;
        if (lines == 1 && !has_line(w.at.kind, line)) continue;
        pixels_of(s, in, &w.at, zeros, at, 5);
        WITH_KIND(w.at.kind, kind, VECTOR_EACH(c, n, m, {
                      EACH(l, lines)
                          if (has_line(kind, line + l))
                              input_line(at, first + c, m, AHEAD * 4 * s->c, out + 5 * l * v->point,
                                         v->point, line + l, kind);
                      out += v->block;
                  }));
    }
}

/* V of backward, where the fourth pixel of a line is its first or its third. */
INLINE void gradient_points(const float *const at[16], int64_t c, vm m, float *out, int64_t point,
                            const int kind)
{
    const bool down = kind / 2, across = kind % 2;
    vf t[4][4];
    EACH(i, 4) {
        if (down && i > 1) continue;
        EACH(j, 4) {
            if (!across || j < 2) t[i][j] = vf_load_some(m, at[4 * i + j] + c);
        }
        if (across) continue;
        t[i][0] = vf_sub(t[i][0], t[i][1]);
        t[i][2] = vf_sub(t[i][2], t[i][1]);
    }
    EACH(i, 4)
        EACH(j, 4) {
            if ((down && i > 1) || (across && j > 1)) continue;
            vf_store(out + (4 * i + j) * point,
                     !down && i % 2 == 0 ? vf_sub(t[i][j], t[1][j]) : t[i][j]);
        }
}

static void gradient_tiles(const strided *s, const float *dy, const block *b, const float *zeros,
                           const buffer *v)
{
    const int last[] = { s->axis[0].side == ODD ? 0 : 2, s->axis[1].side == ODD ? 0 : 2 };
    for (walk w = walk_of(b); w.left; walk_on(s, &w)) {
        const float *pixel[9], *at[16];
        float *out = v->data + w.slot * LANES;
        pixels_of(s, dy, &w.at, zeros, pixel, 3);
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 4; j++)
                at[4 * i + j] = pixel[3 * (i < 3 ? i : last[0]) + (j < 3 ? j : last[1])];
        WITH_KIND(w.at.kind, kind, VECTOR_EACH(c, s->c, m, {
                      EACH(i, 4) ask_for(pixel[4 + i / 2 * 3 + i % 2] + c, AHEAD * 2 * s->c);
                      gradient_points(at, c, m, out, v->point, kind);
                      out += v->block;
                  }));
    }
}

/* y from M: y0 = M0 + M1, y1 = M1 + M2; of a half y0 = M0. */
INLINE void output_pixels(const float *u, int64_t point, vf b, float *const to[4], vm m,
                          const int kind)
{
    const bool down = kind / 2, across = kind % 2;
    vf t[3][2];
    EACH(i, 3) {
        const float *at = u + 3 * i * point;
        if (down && i > 0) continue;
        t[i][0] = vf_load(at);
        if (across) continue;
        const vf both = vf_load(at + point);
        t[i][0] = vf_add(t[i][0], both);
        t[i][1] = vf_add(both, vf_load(at + 2 * point));
    }
    EACH(j, 2) {
        if (across && j > 0) continue;
        vf_store_some(m, to[j], vf_add(down ? t[0][j] : vf_add(t[0][j], t[1][j]), b));
        if (!down) vf_store_some(m, to[2 + j], vf_add(vf_add(t[1][j], t[2][j]), b));
    }
}

static void output_tiles(const strided *s, const buffer *from, const block *b, int64_t first,
                         int64_t n, const float *bias, float *out)
{
    const int64_t h = s->axis[0].out, across = s->axis[1].out;
    for (walk w = walk_of(b); w.left; walk_on(s, &w)) {
        const float *in = from->data + w.slot * LANES;
        float *y = out + ((w.at.row * h + 2 * w.at.i) * across + 2 * w.at.j) * s->k + first;
        WITH_KIND(
            w.at.kind, kind, VECTOR_EACH(c, n, m, {
                float *const to[] = { y, y + s->k, y + across * s->k, y + (across + 1) * s->k };
                const vf add = bias ? vf_load_some(m, bias + first + c) : vf_zero();
                output_pixels(in, from->point, add, to, m, kind);
                y += LANES;
                in += from->block;
            }));
    }
}

/* dx from M: lines e0, e1, o0, o1 of columns e0, e1, o0, o1; NULL: there is no such pixel. */
INLINE void input_pixels(const float *u, int64_t point, float *const to[16], int64_t c, vm m,
                         bool adds, const int kind)
{
    const bool down = kind / 2, across = kind % 2;
    vf t[5][4];
    EACH(i, 5) {
        const float *at = u + 5 * i * point;
        if (down && i % 3 != 0) continue;
        t[i][0] = vf_load(at);
        t[i][2] = vf_load(at + 3 * point);
        if (across) continue;
        const vf both = vf_load(at + point);
        t[i][0] = vf_add(t[i][0], both);
        t[i][1] = vf_add(both, vf_load(at + 2 * point));
        t[i][3] = vf_load(at + 4 * point);
    }
    EACH(i, 4)
        EACH(j, 4) {
            float *x = to[4 * i + j];
            if ((down && i % 2 != 0) || (across && j % 2 != 0) || !x) continue;
            const vf sum = i >= 2 ? t[i + 1][j] : down ? t[0][j] : vf_add(t[i][j], t[i + 1][j]);
            vf_store_some(m, x + c, adds ? vf_add(vf_load_some(m, x + c), sum) : sum);
        }
}

static void pixel_tiles(const strided *s, const buffer *from, const block *b, int64_t first,
                        int64_t n, float *dx, bool adds)
{
    const int64_t h = s->axis[0].out, across = s->axis[1].out;
    const int odd[] = { s->axis[0].side == ODD, s->axis[1].side == ODD };
    for (walk w = walk_of(b); w.left; walk_on(s, &w)) {
        const float *in = from->data + w.slot * LANES;
        float *to[16];
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 4; j++) {
                const int64_t y = 4 * w.at.i + i % 2 * 2 + (i < 2 ? odd[0] : !odd[0]);
                const int64_t x = 4 * w.at.j + j % 2 * 2 + (j < 2 ? odd[1] : !odd[1]);
                float *const pixel = dx + ((w.at.row * h + y) * across + x) * s->k + first;
                to[4 * i + j] = y < h && x < across ? pixel : NULL;
            }
        WITH_KIND(w.at.kind, kind, VECTOR_EACH(c, n, m, {
                      input_pixels(in, from->point, to, c, m, adds, kind);
                      in += from->block;
                  }));
    }
}

/* Products ------------------------------------------------------------------------------------- */

typedef struct operands { /* of a sum over terms */
    int n;
    const float *v[TERMS_MOST], *u[TERMS_MOST];
} operands;

/* m [rows, PANEL] = sum over terms of v [rows, LANES blocks] u [LANES blocks, PANEL]; rows is a
 * constant where this is called. */
INLINE void product(const operands *o, int64_t at, int64_t v_block, int64_t blocks, float *m,
                    int64_t m_block, const int rows)
{
    vf sum[ROWS][2];
    EACH(r, rows)
        EACH(k, 2) sum[r][k] = vf_zero();
    for (int t = 0; t < o->n; t++) {
        const float *v = o->v[t] + at, *u = o->u[t];
        for (int64_t b = 0; b < blocks; b++, v += v_block, u += LANES * PANEL)
            _Pragma("GCC unroll 4") for (int c = 0; c < LANES; c++)
            {
                const vf w0 = vf_load(u + c * PANEL), w1 = vf_load(u + c * PANEL + LANES);
                ask_for(u, (c + U_AHEAD) * PANEL);
                ask_for(u, (c + U_AHEAD) * PANEL + LANES);
                EACH(r, rows) {
                    const vf x = vf_set(v[r * LANES + c]);
                    sum[r][0] = vf_fma(x, w0, sum[r][0]);
                    sum[r][1] = vf_fma(x, w1, sum[r][1]);
                }
            }
    }
    EACH(r, rows)
        EACH(k, 2) vf_store(m + at + k * m_block + r * LANES, sum[r][k]);
}

/* All tiles of a kind, one panel. Tiles are shared out evenly, as few rows leave adders idle. */
static void product_tiles(const operands *o, int64_t v_block, int64_t blocks, float *m,
                          int64_t m_block, int64_t tiles)
{
    int64_t at = 0;
    for (int64_t parts = ceil_of(tiles, ROWS), rows; parts > 0; parts--) {
        rows = ceil_of(tiles, parts);
        switch (rows) {
#define CASE(r)                                                                                    \
    case r:                                                                                        \
        product(o, at, v_block, blocks, m, m_block, r);                                            \
        break;
            TO_ROWS(CASE)
#undef CASE
        }
        tiles -= rows;
        at += rows * LANES;
    }
}

/* Forward and backward ------------------------------------------------------------------------- */

typedef struct plan {
    const keel_derived *packed; /* NULL: weights */
    strided s;
    recipe recipe[TILE_KINDS];
    int64_t tiles;   /* of a block */
    int64_t columns; /* of a block: filters that are multiplied, then transformed */
} plan;

/* A block's tiles by the filters [k, k + n). */
static void multiply(const plan *pl, const block *b, const buffer *v, const buffer *m, int64_t k,
                     int64_t n)
{
    const int64_t blocks = ceil_of(pl->s.c, LANES), panel = blocks * LANES * PANEL;
    const int64_t point = packed_floats(pl->s.c, pl->s.k);
    for (int kind = 0; kind < TILE_KINDS; kind++) {
        const recipe *r = &pl->recipe[kind];
        const int64_t first = b->first[kind] * LANES;
        for (int x = 0; x < r->n; x++)
            for (int64_t j = 0; j < n; j += PANEL) {
                const float *u = (const float *)pl->packed->data + (k + j) / PANEL * panel;
                operands o = { .n = r->sum[x].n };
                for (int i = 0; i < o.n; i++) {
                    o.v[i] = v->data + r->sum[x].v[i] * v->point + first;
                    o.u[i] = u + r->sum[x].u[i] * point;
                }
                float *to = m->data + r->sum[x].m * m->point + j / LANES * m->block + first;
                product_tiles(&o, v->block, blocks, to, m->block, b->count[kind]);
            }
    }
}

static void convolve(const keel_call *c, const float *in, const float *bias, float *out, bool adds)
{
    const plan *pl = c->plan;
    const strided *s = &pl->s;
    const bool backward = s->axis[0].side != FORWARD;
    const int64_t blocks = ceil_of(s->c, LANES), tiles = tiles_of(s) * c->rows;
    float *const zeros = c->scratch, *const free_at = zeros + blocks * LANES;
    const buffer v = buffer_of(free_at, s->c, pl->tiles);
    const buffer m = buffer_of(free_at + s->v_side * s->v_side * v.point, pl->columns, pl->tiles);
    memset(zeros, 0, (size_t)(blocks * LANES) * sizeof *zeros);
    for (int64_t t = 0; t < tiles; t += pl->tiles) {
        const block b = block_of(s, t, at_most(tiles - t, pl->tiles));
        if (backward)
            gradient_tiles(s, in, &b, zeros, &v);
        else
            input_tiles(s, in, &b, 0, s->c, zeros, &v, 0, 5);
        for (int64_t k = 0; k < s->k; k += pl->columns) {
            const int64_t n = at_most(s->k - k, pl->columns);
            multiply(pl, &b, &v, &m, k, n);
            if (backward)
                pixel_tiles(s, &m, &b, k, n, out, adds);
            else
                output_tiles(s, &m, &b, k, n, bias, out);
        }
    }
}

static void forward(const keel_call *c)
{
    convolve(c, c->in[0], c->node->n_weight > 1 ? c->weight[1] : NULL, c->out[0], false);
}

static void backward(const keel_call *c)
{
    if (c->in_grad[0]) convolve(c, c->out_grad[0], NULL, c->in_grad[0], c->in_adds[0]);
}

/* Weights -------------------------------------------------------------------------------------- */

/* Line `line` of dM: what y0 has, both, what y1 has; of a half what y0 has. */
INLINE void dm_line(const float *const at[4], int64_t c, vm m, float *out, int64_t point,
                    const int line, const int kind)
{
    const bool down = kind / 2, across = kind % 2;
    vf t[2];
    EACH(j, 2) {
        if (across && j > 0) continue;
        t[j] = vf_load_some(m, at[line == 2 && !down ? 2 + j : j] + c);
        if (line == 1 && !down) t[j] = vf_add(t[j], vf_load_some(m, at[2 + j] + c));
    }
    vf_store(out, t[0]);
    if (across) return;
    vf_store(out + point, vf_add(t[0], t[1]));
    vf_store(out + 2 * point, t[1]);
}

INLINE void dm_tiles(const strided *s, const float *dy, const block *b, int64_t first, int64_t n,
                     const buffer *d, const int line)
{
    const int64_t h = s->axis[0].out, across = s->axis[1].out;
    for (walk w = walk_of(b); w.left; walk_on(s, &w)) {
        const float *y = dy + ((w.at.row * h + 2 * w.at.i) * across + 2 * w.at.j) * s->k + first;
        /* a half reads y alone in its dimension */
        const int64_t right = w.at.kind % 2 ? 0 : s->k, below = w.at.kind / 2 ? 0 : across * s->k;
        const float *const at[] = { y, y + right, y + below, y + below + right };
        float *out = d->data + w.slot * LANES;
        WITH_KIND(w.at.kind, kind, VECTOR_EACH(c, n, m, {
                      if (line == 0)
                          EACH(i, 4) ask_for(at[i] + c, AHEAD * 2 * s->k);
                      dm_line(at, c, m, out, d->point, line, kind);
                      out += d->block;
                  }));
    }
}

/* Tiles of a kind, at a point of V and of dM. */
typedef struct stretch {
    const float *v, *w;
    int64_t tiles;
} stretch;

/* u [CHANNELS, PANEL] is, or grows by, vt w over n stretches: v of CHANNELS channels, w of a panel
 * of filters. The sums of a block of tiles begin at 0 and are added to those of the blocks before.
 */
INLINE void product_weights(const stretch *s, int n, int64_t v_at, int64_t w_at, int64_t w_block,
                            float *u, bool adds)
{
    vf sum[CHANNELS][2];
    EACH(r, CHANNELS)
        EACH(k, 2) sum[r][k] = vf_zero();
    for (int i = 0; i < n; i++) {
        const float *v = s[i].v + v_at, *w = s[i].w + w_at;
        for (int64_t t = 0; t < s[i].tiles; t++, v += LANES, w += LANES) {
            const vf w0 = vf_load(w), w1 = vf_load(w + w_block);
            EACH(r, CHANNELS) {
                const vf x = vf_set(v[r]);
                sum[r][0] = vf_fma(x, w0, sum[r][0]);
                sum[r][1] = vf_fma(x, w1, sum[r][1]);
            }
        }
    }
    if (adds)
        EACH(r, CHANNELS)
            EACH(k, 2) sum[r][k] = vf_add(sum[r][k], vf_load(u + r * PANEL + k * LANES));
    EACH(r, CHANNELS)
        EACH(k, 2) vf_store(u + r * PANEL + k * LANES, sum[r][k]);
}

/* The four points of a line of dU, from one of V; u [point][panel][channel][PANEL]. */
static void products_weights(const buffer *v, const buffer *d, const block *b, int line, int64_t c,
                             int64_t filters, float *u, int64_t point, bool adds)
{
    const int64_t lines = ceil_of(c, LANES) * LANES;
    for (int x = 0; x < 4; x++) {
        stretch s[8];
        int n = 0;
        for (int kind = 0; kind < TILE_KINDS; kind++)
            for (int t = 0; t < all_terms[FORWARD][kind % 2].n; t++) {
                const term *j = &all_terms[FORWARD][kind % 2].term[t];
                const int64_t first = b->first[kind] * LANES;
                if (j->u == x && has_line(kind, line) && b->count[kind])
                    s[n++] = (stretch){ v->data + j->v * v->point + first,
                                        d->data + j->m * d->point + first, b->count[kind] };
            }
        for (int64_t j = 0; j < filters; j += PANEL)
            for (int64_t i = 0; i < lines; i += CHANNELS)
                product_weights(s, n, i / LANES * v->block + i % LANES, j / LANES * d->block,
                                d->block, u + x * point + (j / PANEL * lines + i) * PANEL, adds);
    }
}

/* The bias sees the sum of a tile's outputs: of a whole tile that is dM at (1, 1), and a half has
 * it at 0 in its dimension. So line 0 holds it for half tiles, line 1 for the others. */
static void bias_gradient(const buffer *d, const block *b, int line, int64_t n, float *sums,
                          bool adds)
{
    for (int64_t j = 0; j < n; j += LANES) {
        vf sum = vf_zero();
        for (int kind = line ? 0 : 2; kind < (line ? 2 : 4); kind++) {
            const float *at =
                d->data + (kind % 2 ? 0 : d->point) + j / LANES * d->block + b->first[kind] * LANES;
            for (int64_t t = 0; t < b->count[kind]; t++) sum = vf_add(sum, vf_load(at + t * LANES));
        }
        vf_store(sums + j, adds ? vf_add(vf_load(sums + j), sum) : sum);
    }
}

/* Of a block of tiles; adds: to those before. */
INLINE void dm_of(const weights_block *w, const strided *s, const block *b, bool adds,
                  const int line)
{
    dm_tiles(s, w->call->out_grad[0], b, w->k0, w->nk, &w->w, line);
    if (line < 2 && w->bias) bias_gradient(&w->w, b, line, w->nk, w->bias, adds || line > 0);
}

/* The terms of a line of V, which belong to a line of dU. Lines 3 and 4 belong to the same. */
INLINE void du_of(const weights_block *w, const strided *s, const block *b, bool adds,
                  const int line)
{
    float *const u = w->u + SIDE * (line < 4 ? line : 3) * w->point;
    input_tiles(s, w->call->in[0], b, w->c0, w->nc, w->zeros, &w->v, line, 1);
    products_weights(&w->v, &w->w, b, line, w->nc, w->nk, u, w->point, adds || line == 4);
}

static void weights_pair(const weights_block *w, const strided *s)
{
    const bool asked = w->call->weight_grad[0] != NULL;
    const int64_t tiles = tiles_of(s) * w->call->rows, blocks = ceil_of(tiles, WEIGHTS_TILES);
    for (int64_t i = 0, t = 0, n; i < blocks; i++, t += n) {
        n = tiles * (i + 1) / blocks - t;
        const block b = block_of(s, t, n);
        const bool adds = t > 0;
        dm_of(w, s, &b, adds, 0);
        if (asked) du_of(w, s, &b, adds, 0);
        if (asked) du_of(w, s, &b, adds, 3);
        dm_of(w, s, &b, adds, 1);
        if (!asked) continue;
        du_of(w, s, &b, adds, 1);
        dm_of(w, s, &b, adds, 2);
        du_of(w, s, &b, adds, 2);
        du_of(w, s, &b, adds, 4);
    }
}

static void weights(const keel_call *c)
{
    const strided s = strided_of(c->node, false);
    weights_block w = { .call = c, .kernel = { .c = s.c, .k = s.k } };
    if (!weights_open(&w, V_LINE, M_LINE)) return;
    do {
        weights_pair(&w, &s);
        weights_store(&w);
    } while (weights_next(&w));
}

/* Prepare -------------------------------------------------------------------------------------- */

/* Where it is faster, by its products, those with the rests of vectors counted, over the direct
 * ones. Measured against oneDNN on one core, over images of 2x2 to 112x112 and 16 to 512 channels.
 * With AVX-512 forward is 1.06 to 1.6 times as fast up to a ratio of 0.8 (more on images of 4x4 and
 * less), slower at 0.9; backward 1.3 and more, weights 1.03 to 2 times up to 1, both slower at 1.4.
 * With AVX2 in the same limits 1.1 to 1.3, 1.2 to 1.7 and 1.07 to 1.8 times. With fewer than 16
 * channels transforms outweigh products. */
static bool pays(const keel_prepare *p, const strided *s)
{
    const int64_t *y = p->node->out[0].shape.dim;
    const int64_t c = ceil_of(s->c, LANES) * LANES, k = ceil_of(s->k, PANEL) * PANEL;
    return s->c >= 16 &&
           (double)(products_of(s) * c * k) <=
               (p->pass == KEEL_FORWARD ? 0.8 : 1) * 9 * (double)(y[0] * y[1] * s->c * s->k);
}

static keel_status prepare(keel_prepare *p)
{
    KEEL_TRY(vector_prepare(p));
    if (p->pass > KEEL_WEIGHTS || p->rows < 1 || !has_strided_tiles(p->node)) return KEEL_EUNSUP;
    const strided s = strided_of(p->node, p->pass == KEEL_BACKWARD);
    if (!pays(p, &s)) return KEEL_EUNSUP;
    if (p->pass == KEEL_WEIGHTS) {
        weights_block w = { .kernel = { .c = s.c, .k = s.k } };
        p->scratch = weights_layout(&w, NULL, V_LINE, M_LINE) * 4;
        return KEEL_OK;
    }
    plan *pl = keel_calloc(1, sizeof *pl);
    if (!pl) return KEEL_ENOMEM;
    pl->s = s;
    for (int kind = 0; kind < TILE_KINDS; kind++) recipe_of(&s, kind, &pl->recipe[kind]);
    pl->tiles = at_most(s.c < 256 ? 56 : 128, tiles_of(&s) * p->rows);
    pl->columns = at_most(ceil_of(s.k, PANEL) * PANEL, 64);
    const keel_status e =
        kernel_derive(p, 0x7374726964656400u, false, pl->s.c, pl->s.k, &pl->packed);
    if (e < 0) {
        keel_free(pl);
        return e;
    }
    const buffer v = buffer_of(NULL, s.c, pl->tiles), m = buffer_of(NULL, pl->columns, pl->tiles);
    p->scratch = (ceil_of(s.c, LANES) * LANES + s.v_side * s.v_side * v.point +
                  s.m_side * s.m_side * m.point) *
                 4;
    p->plan = pl;
    return KEEL_OK;
}

const keel_kernel VECTOR_KERNEL(conv2d_winograd_strided) = {
    .op = &keel_op_conv2d,
    .name = "winograd_strided_" VECTOR_NAME,
    .needs = VECTOR_LEVEL,
    .priority = VECTOR_PRIORITY(WINOGRAD_STRIDED),
    .prepare = prepare,
    .run = { [KEEL_FORWARD] = forward, [KEEL_BACKWARD] = backward, [KEEL_WEIGHTS] = weights },
    .release = keel_free,
};
