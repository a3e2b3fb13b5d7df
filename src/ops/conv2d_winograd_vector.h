/* conv2d with 3x3 windows, stride 1, by Winograd's F(2x2, 3x3) (Lavin & Gray 2015): 16 products for
 * each 2x2 tile of outputs instead of 36.
 *
 *     forward   Y  = At [ (G g Gt) . (Bt d B) ] A, summed over channels; d the 4x4 pixels of a tile
 *     backward  the same on dy, with the kernel turned by 180 degrees and C, K exchanged
 *     weights   dg = Gt [ (Bt d B) . (A dy At) ] G, summed over tiles and rows
 *
 * At each of the 16 points the elementwise product, summed over channels, is a product of matrices.
 * Bt, At and A only add, so that the error is about that of the direct sum (tests/test_winograd.c
 * bounds it); larger tiles, F(4x4, 3x3), would multiply by 4 and 8 and lose a digit.
 *
 * A block of tiles is transformed, multiplied and transformed back while it lies in the cache.
 * Transformed values lie as [point][channels / LANES][tile][LANES]: transforms store whole lines,
 * and the products find the tiles of a block at constant distances. An element's sum runs over
 * channels alone, so that neither the block nor the rows beside it change a bit; a weight gradient
 * is a sum of blocks of tiles, in order from the first row of the call.
 *
 * The file is long since the three passes share tiles, buffers and transforms, which must be
 * inlined with constants. A pixel that is not finite may make its tile's other outputs not a
 * number, where the direct sum keeps them: such a step is refused either way. */
#include "base/memory.h"
#include "ops/_vector.h"
#include "ops/_winograd.h"

#ifdef __AVX512F__
enum { ROWS = 14, CHANNELS = 8 };
#else
enum { ROWS = 5, CHANNELS = 4 };
#endif
/* A panel is two vectors of columns; ROWS x 2 or CHANNELS x 2 sums stay in registers. */
enum { POINTS = 16, PANEL = 2 * LANES };
enum { AHEAD = 4 }; /* tiles; 2 and 8 are even */
/* A weight gradient goes by blocks of WEIGHTS_BLOCK channels and as many filters, whose sums, 64
 * KiB a point, stay in the cache over all tiles, of which at most WEIGHTS_TILES, in equal parts,
 * are taken at a time. Measured: blocks of 64 are up to 13 % slower, of 256 even; 56 or 224 tiles
 * up to 5 % slower. */
enum { WEIGHTS_BLOCK = 128, WEIGHTS_TILES = 128 };
#define INLINE static inline __attribute__((always_inline))
/* Unrolled, else sums would live in memory and not in registers. */
#define EACH(i, n) _Pragma("GCC unroll 16") for (int i = 0; i < (n); i++)

/* A buffer of transformed values: [POINTS or 4][blocks][tiles][LANES]. Points lie an odd number of
 * lines apart, else they would all want the same few places of the cache. */
typedef struct buffer {
    float *data;
    int64_t block, point; /* floats from one to the next */
} buffer;

static buffer buffer_of(float *data, int64_t channels, int64_t tiles)
{
    const int64_t block = tiles * LANES, blocks = ceil_of(channels, PANEL) * 2;
    return (buffer){ data, block, blocks * block + 5 * LANES };
}

/* Transforms ----------------------------------------------------------------------------------- */

/* Where the 4x4 pixels of a tile are. */
static void pixels_of(const problem *p, const float *in, const cursor *c, const float *zeros,
                      const float *at[POINTS])
{
    const int64_t h = 2 * c->i - p->top, w = 2 * c->j - p->left;
    in += c->row * pixels(&p->in);
    EACH(i, 4) EACH(j, 4)
    {
        const bool inside =
            (uint64_t)(h + i) < (uint64_t)p->in.h && (uint64_t)(w + j) < (uint64_t)p->in.w;
        at[4 * i + j] = inside ? in + ((h + i) * p->in.w + w + j) * p->in.c : zeros;
    }
}

/* Lines [line, line + lines) of Bt d B, lines being constant where this is called: Bt takes
 * d0 - d2, d1 + d2, d2 - d1, d1 - d3. */
INLINE void input_lines(const float *const at[POINTS], int64_t c, vm m, float *out, int64_t point,
                        const int line, const int lines)
{
    static const int one[] = { 0, 1, 2, 1 }, other[] = { 2, 2, 1, 3 };
    vf d[4][4];
    if (lines == 4) EACH(i, 4) EACH(j, 4) d[i][j] = vf_load_some(m, at[4 * i + j] + c);
    EACH(l, lines)
    {
        const int i = line + l;
        vf t[4];
        if (lines != 4) EACH(j, 4)
            {
                d[one[i]][j] = vf_load_some(m, at[4 * one[i] + j] + c);
                d[other[i]][j] = vf_load_some(m, at[4 * other[i] + j] + c);
            }
        EACH(j, 4)
        t[j] = i == 1 ? vf_add(d[1][j], d[2][j]) : vf_sub(d[one[i]][j], d[other[i]][j]);
        vf_store(out + (4 * l + 0) * point, vf_sub(t[0], t[2]));
        vf_store(out + (4 * l + 1) * point, vf_add(t[1], t[2]));
        vf_store(out + (4 * l + 2) * point, vf_sub(t[2], t[1]));
        vf_store(out + (4 * l + 3) * point, vf_sub(t[1], t[3]));
    }
}

/* Ask for a pixel that a tile further on will read: its lines are too short a run for the
 * processor to guess what comes next. An address outside of the images is harmless. */
INLINE void ask_for(const float *pixel, int64_t floats_ahead)
{
    _mm_prefetch((const char *)((uintptr_t)pixel + (uintptr_t)floats_ahead * sizeof *pixel),
                 _MM_HINT_T0);
}

/* Transform channels [first, first + n) of `tiles` tiles from `c` on. */
INLINE void input_tiles(const problem *p, const float *in, cursor c, int64_t tiles, int64_t first,
                        int64_t n, const float *zeros, const buffer *v, const int line,
                        const int lines)
{
    for (int64_t t = 0; t < tiles; t++, cursor_next(p, &c)) {
        const float *at[POINTS];
        float *out = v->data + t * LANES;
        pixels_of(p, in, &c, zeros, at);
        VECTOR_EACH(k, n, m, {
            const int64_t ahead = AHEAD * 2 * p->in.c + first + k;
            if (line == 0) EACH(i, 4) ask_for(at[10 + i / 2 * 4 + i % 2], ahead); /* the new ones */
            input_lines(at, first + k, m, out, v->point, line, lines);
            out += v->block;
        });
    }
}

/* At m A of each tile and filter, plus the bias, to where it belongs. */
static void output_tiles(const problem *p, const buffer *from, cursor c, int64_t tiles,
                         int64_t first, int64_t n, const float *bias, float *out, bool adds)
{
    for (int64_t t = 0; t < tiles; t++, cursor_next(p, &c)) {
        const float *in = from->data + t * LANES;
        bool there[4];
        int64_t at[4];
        outputs_of(p, &c, there, at);
        VECTOR_EACH(k, n, m, {
            vf half[4][2];
            vf y[4];
            EACH(i, 4)
            {
                const float *u = in + 4 * i * from->point;
                const vf u1 = vf_load(u + from->point), u2 = vf_load(u + 2 * from->point);
                half[i][0] = vf_add(vf_load(u), vf_add(u1, u2));
                half[i][1] = vf_sub(vf_sub(u1, u2), vf_load(u + 3 * from->point));
            }
            const vf b = bias ? vf_load_some(m, bias + first + k) : vf_zero();
            EACH(j, 2)
            {
                y[j] = vf_add(half[0][j], vf_add(half[1][j], half[2][j]));
                y[2 + j] = vf_sub(vf_sub(half[1][j], half[2][j]), half[3][j]);
            }
            EACH(j, 4)
            {
                float *to = out + at[j] + first + k;
                if (there[j]) vf_store_some(m, to, vf_add(y[j], adds ? vf_load_some(m, to) : b));
            }
            in += from->block;
        });
    }
}

/* Products ------------------------------------------------------------------------------------- */

/* m [rows, PANEL] = v [rows, LANES blocks] u [LANES blocks, PANEL]; rows is a constant where this
 * is called. */
INLINE void product(const buffer *v, const float *at, const float *u, int64_t blocks,
                    const buffer *m, float *out, const int rows)
{
    vf sum[ROWS][2];
    EACH(r, rows) EACH(k, 2) sum[r][k] = vf_zero();
    for (int64_t b = 0; b < blocks; b++, at += v->block, u += LANES * PANEL)
        _Pragma("GCC unroll 4") for (int c = 0; c < LANES; c++)
        {
            const vf w0 = vf_load(u + c * PANEL), w1 = vf_load(u + c * PANEL + LANES);
            EACH(r, rows)
            {
                const vf x = vf_set(at[r * LANES + c]);
                sum[r][0] = vf_fma(x, w0, sum[r][0]);
                sum[r][1] = vf_fma(x, w1, sum[r][1]);
            }
        }
    EACH(r, rows) EACH(k, 2) vf_store(out + k * m->block + r * LANES, sum[r][k]);
}

/* One point: all tiles, one panel. Tiles are shared out evenly, as few rows leave adders idle. */
static void product_tiles(const buffer *v, const float *at, const float *u, int64_t blocks,
                          const buffer *m, float *out, int64_t tiles)
{
    for (int64_t parts = ceil_of(tiles, ROWS), rows; parts > 0; parts--) {
        rows = ceil_of(tiles, parts);
        switch (rows) {
#define CASE(r)                                                                                    \
    case r:                                                                                        \
        product(v, at, u, blocks, m, out, r);                                                      \
        break;
            CASE(1)
            CASE(2)
            CASE(3)
            CASE(4)
            CASE(5)
#ifdef __AVX512F__
            CASE(6)
            CASE(7)
            CASE(8)
            CASE(9)
            CASE(10)
            CASE(11)
            CASE(12)
            CASE(13)
            CASE(14)
#endif
#undef CASE
        }
        tiles -= rows;
        at += rows * LANES;
        out += rows * LANES;
    }
}

/* The kernel, transformed ---------------------------------------------------------------------- */

/* u [POINTS][panels][channels][PANEL]: G g Gt, each line of a panel the filters of one channel.
 * Zero where a panel or the last vector of channels is wider than the kernel. */
typedef struct packer {
    int64_t c, k; /* Keras's kernel is [3, 3, c, k] */
    bool turned;  /* for backward: turned by 180 degrees, filters and channels exchanged */
} packer;

static int64_t packed_floats(int64_t c, int64_t k)
{
    return ceil_of(k, PANEL) * PANEL * ceil_of(c, LANES) * LANES;
}

INLINE void kernel_line(const vf g[3], vf u[4])
{
    const vf half = vf_set(0.5f), ends = vf_mul(half, vf_add(g[0], g[2])),
             middle = vf_mul(half, g[1]);
    u[0] = g[0];
    u[1] = vf_add(ends, middle);
    u[2] = vf_sub(ends, middle);
    u[3] = g[2];
}

/* Past the caches: a packed kernel of many channels would only drive out what they hold. */
INLINE void store_past(float *p, vf x)
{
#ifdef __AVX512F__
    _mm512_stream_ps(p, x);
#else
    _mm256_stream_ps(p, x);
#endif
}

INLINE void kernel_points(const vf g[3][3], float *out, int64_t point, const bool past)
{
    vf t[3][4], column[3], u[4];
    EACH(i, 3) kernel_line(g[i], t[i]);
    EACH(j, 4)
    {
        EACH(i, 3) column[i] = t[i][j];
        kernel_line(column, u);
        EACH(i, 4)
        {
            if (past)
                store_past(out + (4 * i + j) * point, u[i]);
            else
                vf_store(out + (4 * i + j) * point, u[i]);
        }
    }
}

INLINE void pack_straight(const packer *k, const float *w, float *out, const bool past)
{
    const int64_t point = packed_floats(k->c, k->k), lines = ceil_of(k->c, LANES) * LANES;
    for (int64_t column = 0; column < ceil_of(k->k, PANEL) * PANEL; column += LANES)
        for (int64_t c = 0; c < lines; c++) {
            const vm m = vm_first(c < k->c && column < k->k ? k->k - column : 0);
            const float *at = w + c * k->k + column;
            float *to = out + (column / PANEL * lines + c) * PANEL + column % PANEL;
            vf g[3][3];
            EACH(i, 3) EACH(j, 3) g[i][j] = vf_load_some(m, at + (3 * i + j) * k->c * k->k);
            kernel_points((const vf(*)[3])g, to, point, past);
        }
}

/* [LANES][LANES] pieces of each tap are transposed on the way. */
INLINE void pack_turned(const packer *k, const float *w, float *out, const bool past)
{
    const int64_t point = packed_floats(k->k, k->c), lines = ceil_of(k->k, LANES) * LANES;
    float piece[9][LANES][LANES];
    for (int64_t column = 0; column < ceil_of(k->c, PANEL) * PANEL; column += LANES)
        for (int64_t f = 0; f < lines; f += LANES) {
            const int64_t nc = at_most(k->c - column, LANES), nf = at_most(k->k - f, LANES);
            memset(piece, 0, sizeof piece);
            for (int tap = 0; tap < 9; tap++)
                for (int64_t c = 0; c < nc; c++) {
                    const float *at = w + (tap * k->c + column + c) * k->k + f;
                    for (int64_t l = 0; l < nf; l++) piece[8 - tap][l][c] = at[l];
                }
            for (int l = 0; l < LANES; l++) {
                float *to = out + (column / PANEL * lines + f + l) * PANEL + column % PANEL;
                vf g[3][3];
                EACH(i, 3) EACH(j, 3) g[i][j] = vf_load(piece[3 * i + j][l]);
                kernel_points((const vf(*)[3])g, to, point, past);
            }
        }
}

static void refresh(const keel_derived *d, const void *weight)
{
    const packer *k = d->plan;
    const bool past = d->bytes > 1 << 20;
    if (k->turned && past) pack_turned(k, weight, d->data, true);
    if (k->turned && !past) pack_turned(k, weight, d->data, false);
    if (!k->turned && past) pack_straight(k, weight, d->data, true);
    if (!k->turned && !past) pack_straight(k, weight, d->data, false);
    if (past) _mm_sfence(); /* other workers read it after their next meeting */
}

/* Forward and backward ------------------------------------------------------------------------- */

typedef struct plan {
    const keel_derived *packed; /* NULL: weights */
    int64_t tiles;              /* of a block */
    int64_t columns;            /* of a block: filters that are multiplied, then transformed */
} plan;

static void convolve(const keel_call *c, const problem *p, const float *in, const float *bias,
                     float *out, bool adds)
{
    const plan *pl = c->plan;
    const int64_t blocks = ceil_of(p->in.c, LANES), panel = blocks * LANES * PANEL;
    const int64_t tiles = p->down * p->across * c->rows, point = packed_floats(p->in.c, p->out.c);
    float *const zeros = c->scratch, *const free_at = zeros + blocks * LANES;
    const buffer v = buffer_of(free_at, p->in.c, pl->tiles);
    const buffer m = buffer_of(free_at + POINTS * v.point, pl->columns, pl->tiles);
    const float *u = pl->packed->data;
    memset(zeros, 0, (size_t)(blocks * LANES) * sizeof *zeros);
    for (int64_t t = 0; t < tiles; t += pl->tiles) {
        const int64_t n = at_most(tiles - t, pl->tiles);
        const cursor at = cursor_at(p, t);
        input_tiles(p, in, at, n, 0, p->in.c, zeros, &v, 0, 4);
        for (int64_t k = 0; k < p->out.c; k += pl->columns) {
            const int64_t nk = at_most(p->out.c - k, pl->columns);
            for (int x = 0; x < POINTS; x++)
                for (int64_t j = 0; j < nk; j += PANEL)
                    product_tiles(&v, v.data + x * v.point, u + x * point + (k + j) / PANEL * panel,
                                  blocks, &m, m.data + x * m.point + j / LANES * m.block, n);
            output_tiles(p, &m, at, n, k, nk, bias, out, adds);
        }
    }
}

static void forward(const keel_call *c)
{
    const problem p = problem_of(c->node, false);
    convolve(c, &p, c->in[0], c->node->n_weight > 1 ? c->weight[1] : NULL, c->out, false);
}

static void backward(const keel_call *c)
{
    const problem p = problem_of(c->node, true);
    if (c->in_grad[0]) convolve(c, &p, c->out_grad, NULL, c->in_grad[0], c->in_adds[0]);
}

/* Weights -------------------------------------------------------------------------------------- */

/* One line of A dy At: A takes y0, y0 + y1, y0 - y1, -y1. */
INLINE void gradient_line(const float *const at[4], int64_t k, vm m, float *out, int64_t point,
                          const int line)
{
    vf t[2];
    EACH(j, 2)
    {
        const vf y0 = vf_load_some(m, at[j] + k), y1 = vf_load_some(m, at[2 + j] + k);
        t[j] = line == 0   ? y0
               : line == 1 ? vf_add(y0, y1)
               : line == 2 ? vf_sub(y0, y1)
                           : vf_sub(vf_zero(), y1);
    }
    vf_store(out, t[0]);
    vf_store(out + point, vf_add(t[0], t[1]));
    vf_store(out + 2 * point, vf_sub(t[0], t[1]));
    vf_store(out + 3 * point, vf_sub(vf_zero(), t[1]));
}

INLINE void gradient_tiles(const problem *p, const float *dy, cursor c, int64_t tiles,
                           int64_t first, int64_t n, const float *zeros, const buffer *w,
                           const int line)
{
    for (int64_t t = 0; t < tiles; t++, cursor_next(p, &c)) {
        const float *at[4];
        float *out = w->data + t * LANES;
        bool there[4];
        int64_t place[4];
        outputs_of(p, &c, there, place);
        EACH(i, 4) at[i] = there[i] ? dy + place[i] + first : zeros;
        VECTOR_EACH(k, n, m, {
            if (line == 0) EACH(i, 4) ask_for(at[i], AHEAD * 2 * p->out.c + k);
            gradient_line(at, k, m, out, w->point, line);
            out += w->block;
        });
    }
}

/* u [CHANNELS, PANEL] is, or grows by, vt w: v of CHANNELS channels, w of a panel of filters. The
 * sums of a block of tiles begin at 0 and are added to those of the blocks before. */
INLINE void product_weights(const float *v, const float *w, int64_t block, int64_t tiles, float *u,
                            bool adds)
{
    vf sum[CHANNELS][2];
    EACH(r, CHANNELS) EACH(k, 2) sum[r][k] = vf_zero();
    for (int64_t t = 0; t < tiles; t++, v += LANES, w += LANES) {
        const vf w0 = vf_load(w), w1 = vf_load(w + block);
        EACH(r, CHANNELS)
        {
            const vf x = vf_set(v[r]);
            sum[r][0] = vf_fma(x, w0, sum[r][0]);
            sum[r][1] = vf_fma(x, w1, sum[r][1]);
        }
    }
    if (adds) EACH(r, CHANNELS)
    EACH(k, 2) sum[r][k] = vf_add(sum[r][k], vf_load(u + r * PANEL + k * LANES));
    EACH(r, CHANNELS) EACH(k, 2) vf_store(u + r * PANEL + k * LANES, sum[r][k]);
}

/* The four points of a line; u [point][panel][channel][PANEL]. */
static void products_weights(const buffer *v, const buffer *w, int64_t tiles, int64_t c, int64_t k,
                             float *u, int64_t point, bool adds)
{
    const int64_t lines = ceil_of(c, LANES) * LANES;
    for (int x = 0; x < 4; x++)
        for (int64_t j = 0; j < k; j += PANEL)
            for (int64_t i = 0; i < lines; i += CHANNELS)
                product_weights(v->data + x * v->point + i / LANES * v->block + i % LANES,
                                w->data + x * w->point + j / LANES * w->block, w->block, tiles,
                                u + x * point + (j / PANEL * lines + i) * PANEL, adds);
}

/* Gt takes u0 + (u1 + u2) / 2, (u1 - u2) / 2, (u1 + u2) / 2 + u3. */
INLINE void kernel_gradient_line(const vf u[4], vf g[3])
{
    const vf half = vf_set(0.5f), sum = vf_mul(half, vf_add(u[1], u[2]));
    g[0] = vf_add(u[0], sum);
    g[1] = vf_mul(half, vf_sub(u[1], u[2]));
    g[2] = vf_add(sum, u[3]);
}

/* Gt u G of a block of channels [c0, c0 + nc) and filters [k0, k0 + nk), into dw [3, 3, C, K]. */
static void kernel_gradient(const problem *p, const float *u, int64_t point, int64_t c0, int64_t nc,
                            int64_t k0, int64_t nk, float *dw, bool adds)
{
    const int64_t lines = ceil_of(nc, LANES) * LANES;
    for (int64_t c = 0; c < nc; c++)
        for (int64_t k = 0; k < nk; k += LANES) {
            const vm m = vm_first(nk - k);
            const float *at = u + (k / PANEL * lines + c) * PANEL + k % PANEL;
            float *to = dw + (c0 + c) * p->out.c + k0 + k;
            vf line[4][3];
            EACH(i, 4)
            {
                vf x[4];
                EACH(j, 4) x[j] = vf_load(at + (4 * i + j) * point);
                kernel_gradient_line(x, line[i]);
            }
            EACH(j, 3)
            {
                const vf x[4] = { line[0][j], line[1][j], line[2][j], line[3][j] };
                vf g[3];
                kernel_gradient_line(x, g);
                EACH(i, 3)
                {
                    float *tap = to + (3 * i + j) * p->in.c * p->out.c;
                    vf_store_some(m, tap, adds ? vf_add(vf_load_some(m, tap), g[i]) : g[i]);
                }
            }
        }
}

/* The bias sees the sum of a tile's outputs, which is at point (1, 1) of A dy At. */
static void bias_gradient(const buffer *w, int64_t tiles, int64_t n, float *sums, bool adds)
{
    const float *at = w->data + w->point;
    for (int64_t k = 0; k < n; k += LANES, at += w->block) {
        vf sum = vf_zero();
        for (int64_t t = 0; t < tiles; t++) sum = vf_add(sum, vf_load(at + t * LANES));
        vf_store(sums + k, adds ? vf_add(vf_load(sums + k), sum) : sum);
    }
}

typedef struct weights_block { /* what the blocks of a call share */
    const keel_call *call;
    problem p;
    int64_t c0, nc, k0, nk; /* channels and filters */
    float *zeros, *bias, *u;
    int64_t point; /* of u */
    buffer v, w;
} weights_block;

/* Line `line` of the points, over n tiles from t on. */
INLINE void weights_line(const weights_block *b, int64_t t, int64_t n, const int line)
{
    const keel_call *c = b->call;
    const cursor at = cursor_at(&b->p, t);
    gradient_tiles(&b->p, c->out_grad, at, n, b->k0, b->nk, b->zeros, &b->w, line);
    if (line == 1 && b->bias) bias_gradient(&b->w, n, b->nk, b->bias, t > 0);
    if (!c->weight_grad[0]) return;
    input_tiles(&b->p, c->in[0], at, n, b->c0, b->nc, b->zeros, &b->v, line, 1);
    products_weights(&b->v, &b->w, n, b->nc, b->nk, b->u + 4 * line * b->point, b->point, t > 0);
}

static void weights_pair(const weights_block *b)
{
    const keel_call *c = b->call;
    const int64_t tiles = b->p.down * b->p.across * c->rows;
    const int64_t blocks = ceil_of(tiles, WEIGHTS_TILES);
    for (int64_t i = 0, t = 0, n; i < blocks; i++, t += n) {
        n = tiles * (i + 1) / blocks - t;
        if (c->weight_grad[0]) weights_line(b, t, n, 0);
        weights_line(b, t, n, 1);
        if (!c->weight_grad[0]) continue;
        weights_line(b, t, n, 2);
        weights_line(b, t, n, 3);
    }
    if (c->weight_grad[0])
        kernel_gradient(&b->p, b->u, b->point, b->c0, b->nc, b->k0, b->nk, c->weight_grad[0],
                        c->weight_adds);
    float *db = c->weight_grad[1];
    if (b->bias)
        VECTOR_EACH(k, b->nk, m, {
            const vf sum = vf_load(b->bias + k);
            float *to = db + b->k0 + k;
            vf_store_some(m, to, c->weight_adds ? vf_add(vf_load_some(m, to), sum) : sum);
        });
}

/* Where things lie in the scratch of a weight gradient, in floats; returns how many there are. */
static int64_t weights_layout(weights_block *b, float *scratch, int64_t c, int64_t k)
{
    const int64_t nc = ceil_of(at_most(c, WEIGHTS_BLOCK), LANES) * LANES;
    const int64_t nk = ceil_of(at_most(k, WEIGHTS_BLOCK), PANEL) * PANEL;
    const int64_t bias = ceil_of(c > k ? c : k, LANES) * LANES, u = bias + nk;
    b->point = nc * nk + LANES;
    const int64_t v = u + POINTS * b->point;
    b->v = buffer_of(scratch ? scratch + v : NULL, nc, WEIGHTS_TILES);
    const int64_t w = v + 4 * b->v.point;
    b->w = buffer_of(scratch ? scratch + w : NULL, nk, WEIGHTS_TILES);
    if (scratch) b->zeros = scratch, b->bias = scratch + bias, b->u = scratch + u;
    return w + 4 * b->w.point;
}

static void weights(const keel_call *c)
{
    weights_block b = { .call = c, .p = problem_of(c->node, false) };
    const int64_t n_c = b.p.in.c, n_k = b.p.out.c;
    weights_layout(&b, c->scratch, n_c, n_k);
    float *const bias = c->node->n_weight > 1 && c->weight_grad[1] ? b.bias : NULL;
    if (!c->weight_grad[0] && !bias) return;
    memset(b.zeros, 0, (size_t)(b.bias - b.zeros) * sizeof *b.zeros);
    for (b.c0 = 0; b.c0 < (c->weight_grad[0] ? n_c : 1); b.c0 += WEIGHTS_BLOCK)
        for (b.k0 = 0; b.k0 < n_k; b.k0 += WEIGHTS_BLOCK) {
            b.nc = at_most(n_c - b.c0, WEIGHTS_BLOCK);
            b.nk = at_most(n_k - b.k0, WEIGHTS_BLOCK);
            b.bias = b.c0 == 0 ? bias : NULL;
            weights_pair(&b);
        }
}

/* Prepare -------------------------------------------------------------------------------------- */

static keel_status derive(keel_prepare *p, plan *pl, const problem *o)
{
    const bool turned = p->pass == KEEL_BACKWARD;
    packer *k = keel_calloc(1, sizeof *k);
    if (!k) return KEEL_ENOMEM;
    *k = (packer){ .c = p->node->in[0].shape.dim[2], .k = p->node->out.shape.dim[2], turned };
    keel_derived want = { .bytes = (size_t)(POINTS * packed_floats(o->in.c, o->out.c)) * 4,
                          .weight = 0,
                          .key = 0x77696e6f67726164u + turned + 2 * LANES,
                          .refresh = refresh,
                          .release = keel_free,
                          .plan = k };
    return p->derive(p->context, &want, &pl->packed);
}

/* Where it is faster: products, those with the rests of tiles and vectors counted, are at most
 * two thirds of the direct ones. Measured against oneDNN on one core with AVX-512 over 16 to 512
 * channels: 1.4 to 2.2 times as fast where the ratio is 0.44 to 0.6, even at 0.65, slower above;
 * and with fewer than 16 channels transforms outweigh products. */
static bool pays(const problem *o)
{
    const int64_t tiles = o->down * o->across, c = ceil_of(o->in.c, LANES) * LANES;
    const int64_t k = ceil_of(o->out.c, PANEL) * PANEL;
    return o->in.c >= 16 && (double)(POINTS * tiles * c * k) <=
                                0.65 * 9 * (double)(o->out.h * o->out.w * o->in.c * o->out.c);
}

static keel_status prepare(keel_prepare *p)
{
    KEEL_TRY(vector_prepare(p));
    if (p->pass > KEEL_WEIGHTS || p->rows < 1 || !has_tiles(p->node)) return KEEL_EUNSUP;
    const problem o = problem_of(p->node, p->pass == KEEL_BACKWARD);
    const int64_t tiles = o.down * o.across * p->rows;
    if (!pays(&o)) return KEEL_EUNSUP;
    if (p->pass == KEEL_WEIGHTS) {
        weights_block b;
        p->scratch = weights_layout(&b, NULL, o.in.c, o.out.c) * 4;
        return KEEL_OK;
    }
    plan *pl = keel_calloc(1, sizeof *pl);
    if (!pl) return KEEL_ENOMEM;
    pl->tiles = at_most(o.in.c <= 56 ? 28 : o.in.c < 256 ? o.in.c / 2 : 128, tiles);
    pl->columns = at_most(ceil_of(o.out.c, PANEL) * PANEL, 64);
    const keel_status s = derive(p, pl, &o);
    if (s < 0) {
        keel_free(pl);
        return s;
    }
    const buffer v = buffer_of(NULL, o.in.c, pl->tiles),
                 m = buffer_of(NULL, pl->columns, pl->tiles);
    p->scratch = (ceil_of(o.in.c, LANES) * LANES + POINTS * (v.point + m.point)) * 4;
    p->plan = pl;
    return KEEL_OK;
}

const keel_kernel VECTOR_KERNEL(conv2d_winograd) = {
    .op = "conv2d",
    .name = "winograd_" VECTOR_NAME,
    .priority = VECTOR_PRIORITY + 100, /* before a library's */
    .prepare = prepare,
    .run = { [KEEL_FORWARD] = forward, [KEEL_BACKWARD] = backward, [KEEL_WEIGHTS] = weights },
    .release = keel_free,
};
