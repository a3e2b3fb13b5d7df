/* conv2d with W x W windows, stride 1, by Winograd's F(T x T, W x W), T being TILE and W TAPS
 * (_winograd_points.h): for windows of 3x3 16 products for each 2x2 tile of outputs instead of 36,
 * or 36 for each 4x4 tile instead of 144; for windows of 2x2 25 for each 4x4 tile instead of 64, or
 * 16 for each 3x3 tile instead of 36.
 *
 *     forward   Y  = At [ (G g Gt) . (Bt d B) ] A, summed over channels; d the pixels of a tile
 *     backward  the same on dy, with the kernel turned by 180 degrees and C, K exchanged
 *     weights   dg = Gt [ (Bt d B) . (A dy At) ] G, summed over tiles and rows
 *
 * At each point the elementwise product, summed over channels, is a product of matrices.
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
#ifndef TILE /* conv2d_winograd4.c and others are this file with other tiles and windows */
#define TILE 2
#define TAPS 3
#endif
#include "base/memory.h"
#include "ops/x86/_winograd_points.h"
#include "ops/x86/_winograd_kernel.h"
#include "ops/x86/_winograd_pixels.h"
#include "ops/x86/_winograd_weights.h"

KEEL_USES_OP(conv2d);

/* Of a sum over channels, in vectors; and the place behind a line of points of dy that has the sums
 * of tiles. */
#if TILE + TAPS == 5
enum { SEGMENT = 1 << 30, TOTAL = 1 };
#else
enum { SEGMENT = 16 / LANES, TOTAL = SIDE };
#endif
enum { AHEAD = 4 }; /* tiles; 2 and 8 are even */

/* Transforms ----------------------------------------------------------------------------------- */

/* Lines [line, line + lines) of Bt d B, lines being constant where this is called. out: where
 * points of each kind begin. */
INLINE void input_lines(const float *const at[POINTS], int64_t c, vm m, float *const out[KINDS],
                        int64_t point, const int line, const int lines)
{
    vf t[SIDE][SIDE];
    EACH(j, SIDE) {
        vf d[SIDE], v[SIDE];
        EACH(i, SIDE) d[i] = vf_load_some(m, at[SIDE * i + j] + c);
        input_points(d, v);
        EACH(l, lines) t[l][j] = v[line + l];
    }
    EACH(l, lines) {
        vf v[SIDE];
        input_points(t[l], v);
        EACH(j, SIDE)
            vf_store(out[kind_of(line + l == LAST, j == LAST)] + (SIDE * l + j) * point, v[j]);
    }
}

/* Transform channels [first, first + n) of `tiles` tiles from `c` on. The points that a tile does
 * without are written too, to where the next tile that has them goes. */
INLINE void input_tiles(const problem *p, const float *in, cursor c, int64_t tiles, int64_t first,
                        int64_t n, const float *zeros, const buffer *v, const int line,
                        const int lines)
{
    int64_t place[KINDS] = { 0 };
    for (int64_t t = 0; t < tiles; t++, cursor_next(p, &c)) {
        const float *at[POINTS];
        float *out[KINDS];
        if (line == LAST && !has_lowest(p, &c)) continue;
        EACH(i, KINDS) out[i] = v->data + place[i] * LANES;
        pixels_of(p, in, &c, zeros, at);
        VECTOR_EACH(k, n, m, {
            const int64_t ahead = AHEAD * TILE * p->in.c + first + k;
            if (line == 0)
                EACH(i, TILE)
                    EACH(j, TILE) /* those that the tile before has not */
                        ask_for(at[(TAPS - 1 + i) * SIDE + TAPS - 1 + j], ahead);
            input_lines(at, first + k, m, out, v->point, line, lines);
            EACH(i, KINDS) out[i] += v->block;
        });
        count_tile(p, &c, place);
    }
}

/* At m A of each tile and filter, plus the bias, to where it belongs. */
static void output_tiles(const problem *p, const buffer *from, cursor c, int64_t tiles,
                         int64_t first, int64_t n, const float *bias, float *out, bool adds)
{
    int64_t place[KINDS] = { 0 };
    for (int64_t t = 0; t < tiles; t++, cursor_next(p, &c)) {
        const float *in[KINDS];
        bool there[TILE * TILE];
        int64_t at[TILE * TILE];
        EACH(i, KINDS) in[i] = from->data + place[i] * LANES;
        outputs_of(p, &c, TILE, there, at);
        VECTOR_EACH(k, n, m, {
            vf half[SIDE][TILE];
            const vf b = bias ? vf_load_some(m, bias + first + k) : vf_zero();
            EACH(i, SIDE) {
                vf u[SIDE];
                EACH(j, SIDE)
                    u[j] =
                        vf_load(in[kind_of(i == LAST, j == LAST)] + (SIDE * i + j) * from->point);
                output_points(u, half[i]);
            }
            EACH(j, TILE) {
                vf u[SIDE], y[TILE];
                EACH(i, SIDE) u[i] = half[i][j];
                output_points(u, y);
                EACH(i, TILE) {
                    float *to = out + at[TILE * i + j] + first + k;
                    if (there[TILE * i + j])
                        vf_store_some(m, to, vf_add(y[i], adds ? vf_load_some(m, to) : b));
                }
            }
            EACH(i, KINDS) in[i] += from->block;
        });
        count_tile(p, &c, place);
    }
}

/* Products ------------------------------------------------------------------------------------- */

/* m [rows, PANEL] is, or grows by, v [rows, LANES blocks] u [LANES blocks, PANEL]; rows is a
 * constant where this is called. */
INLINE void product(const buffer *v, const float *at, const float *u, int64_t blocks,
                    const buffer *m, float *out, bool adds, const int rows)
{
    vf sum[ROWS][2];
    EACH(r, rows)
        EACH(k, 2) sum[r][k] = vf_zero();
    for (int64_t b = 0; b < blocks; b++, at += v->block, u += LANES * PANEL)
        _Pragma("GCC unroll 4") for (int c = 0; c < LANES; c++)
        {
            const vf w0 = vf_load(u + c * PANEL), w1 = vf_load(u + c * PANEL + LANES);
            EACH(r, rows) {
                const vf x = vf_set(at[r * LANES + c]);
                sum[r][0] = vf_fma(x, w0, sum[r][0]);
                sum[r][1] = vf_fma(x, w1, sum[r][1]);
            }
        }
    EACH(r, rows)
        EACH(k, 2) {
            float *to = out + k * m->block + r * LANES;
            vf_store(to, adds ? vf_add(vf_load(to), sum[r][k]) : sum[r][k]);
        }
}

/* One point: all tiles, one panel. Tiles are shared out evenly, as few rows leave adders idle. */
static void product_tiles(const buffer *v, const float *at, const float *u, int64_t blocks,
                          const buffer *m, float *out, bool adds, int64_t tiles)
{
    for (int64_t parts = ceil_of(tiles, ROWS), rows; parts > 0; parts--) {
        rows = ceil_of(tiles, parts);
        switch (rows) {
#define CASE(r)                                                                                    \
    case r:                                                                                        \
        product(v, at, u, blocks, m, out, adds, r);                                                \
        break;
            TO_ROWS(CASE)
#undef CASE
        }
        tiles -= rows;
        at += rows * LANES;
        out += rows * LANES;
    }
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
        int64_t with[KINDS];
        count_tiles(p, at, n, with);
        input_tiles(p, in, at, n, 0, p->in.c, zeros, &v, 0, SIDE);
        for (int64_t k = 0; k < p->out.c; k += pl->columns) {
            const int64_t nk = at_most(p->out.c - k, pl->columns);
            for (int x = 0; x < POINTS; x++)
                for (int64_t j = 0; j < nk; j += PANEL)
                    for (int64_t b = 0; b < blocks; b += SEGMENT)
                        product_tiles(&v, v.data + x * v.point + b * v.block,
                                      u + x * point + (k + j) / PANEL * panel + b * LANES * PANEL,
                                      at_most(blocks - b, SEGMENT), &m,
                                      m.data + x * m.point + j / LANES * m.block, b > 0,
                                      with[kind_of(x / SIDE == LAST, x % SIDE == LAST)]);
            output_tiles(p, &m, at, n, k, nk, bias, out, adds);
        }
    }
}

static void forward(const keel_call *c)
{
    const problem p = problem_of(c->node, false, TILE);
    convolve(c, &p, c->in[0], c->node->n_weight > 1 ? c->weight[1] : NULL, c->out[0], false);
}

static void backward(const keel_call *c)
{
    const problem p = problem_of(c->node, true, TILE);
    if (c->in_grad[0]) convolve(c, &p, c->out_grad[0], NULL, c->in_grad[0], c->in_adds[0]);
}

/* Weights -------------------------------------------------------------------------------------- */

/* One line of A dy At; last: where the points of the last column begin. Behind line 1 there is the
 * sum of the outputs, for the bias, if none of its points is that. */
INLINE void gradient_line(const float *const at[TILE * TILE], int64_t k, vm m, float *out,
                          float *last, int64_t point, const int line)
{
    vf t[TILE], w[SIDE], total = vf_zero();
    EACH(j, TILE) {
        vf y[TILE];
        EACH(i, TILE) {
            y[i] = vf_load_some(m, at[TILE * i + j] + k);
            total = vf_add(total, y[i]);
        }
        gradient_points(y, w);
        t[j] = w[line];
    }
    gradient_points(t, w);
    EACH(j, LAST) vf_store(out + j * point, w[j]);
    vf_store(last + LAST * point, w[LAST]);
    if (line == 1 && SIDE != 4) vf_store(out + TOTAL * point, total);
}

INLINE void gradient_tiles(const problem *p, const float *dy, cursor c, int64_t tiles,
                           int64_t first, int64_t n, const float *zeros, const buffer *w,
                           const int line)
{
    int64_t place[KINDS] = { 0 };
    for (int64_t t = 0; t < tiles; t++, cursor_next(p, &c)) {
        const float *at[TILE * TILE];
        float *out = w->data + place[kind_of(line == LAST, false)] * LANES;
        float *last = w->data + place[kind_of(line == LAST, true)] * LANES;
        bool there[TILE * TILE];
        int64_t pixel[TILE * TILE];
        if (line == LAST && !has_lowest(p, &c)) continue;
        outputs_of(p, &c, TILE, there, pixel);
        EACH(i, TILE * TILE) at[i] = there[i] ? dy + pixel[i] + first : zeros;
        VECTOR_EACH(k, n, m, {
            if (line == 0)
                EACH(i, TILE * TILE) ask_for(at[i], AHEAD * TILE * p->out.c + k);
            gradient_line(at, k, m, out, last, w->point, line);
            out += w->block;
            last += w->block;
        });
        count_tile(p, &c, place);
    }
}

/* u [CHANNELS, PANEL] is, or grows by, vt w: v of CHANNELS channels, w of a panel of filters. The
 * sums of a block of tiles begin at 0 and are added to those of the blocks before. */
INLINE void product_weights(const float *v, const float *w, int64_t block, int64_t tiles, float *u,
                            bool adds)
{
    vf sum[CHANNELS][2];
    EACH(r, CHANNELS)
        EACH(k, 2) sum[r][k] = vf_zero();
    for (int64_t t = 0; t < tiles; t++, v += LANES, w += LANES) {
        const vf w0 = vf_load(w), w1 = vf_load(w + block);
        EACH(r, CHANNELS) {
            const vf x = vf_set(v[r]);
            sum[r][0] = vf_fma(x, w0, sum[r][0]);
            sum[r][1] = vf_fma(x, w1, sum[r][1]);
        }
    }
    if (adds)
        EACH(r, CHANNELS)
            EACH(k, 2) sum[r][k] = vf_add(sum[r][k], vf_load(u + r * PANEL + k * LANES));
    EACH(r, CHANNELS)
        EACH(k, 2) vf_store(u + r * PANEL + k * LANES, sum[r][k]);
}

/* The points of a line; u [point][panel][channel][PANEL]. last: how many tiles have the last
 * column. */
static void products_weights(const buffer *v, const buffer *w, int64_t tiles, int64_t last,
                             int64_t c, int64_t k, float *u, int64_t point, bool adds)
{
    const int64_t lines = ceil_of(c, LANES) * LANES;
    for (int x = 0; x < SIDE; x++)
        for (int64_t j = 0; j < k; j += PANEL)
            for (int64_t i = 0; i < lines; i += CHANNELS)
                product_weights(v->data + x * v->point + i / LANES * v->block + i % LANES,
                                w->data + x * w->point + j / LANES * w->block, w->block,
                                x == LAST ? last : tiles,
                                u + x * point + (j / PANEL * lines + i) * PANEL, adds);
}

/* The bias sees the sum of the outputs. */
static void bias_gradient(const buffer *w, int64_t tiles, int64_t n, float *sums, bool adds)
{
    const float *at = w->data + TOTAL * w->point;
    for (int64_t k = 0; k < n; k += LANES, at += w->block) {
        vf sum = vf_zero();
        for (int64_t t = 0; t < tiles; t++) sum = vf_add(sum, vf_load(at + t * LANES));
        vf_store(sums + k, adds ? vf_add(vf_load(sums + k), sum) : sum);
    }
}

/* Line `line` of the points, over the tiles from `at` on, which are as many as `with` says; adds:
 * to those before. */
INLINE void weights_line(const weights_block *b, const problem *p, cursor at,
                         const int64_t with[KINDS], bool adds, const int line)
{
    const keel_call *c = b->call;
    const int64_t n = with[0];
    gradient_tiles(p, c->out_grad[0], at, n, b->k0, b->nk, b->zeros, &b->w, line);
    if (line == 1 && b->bias) bias_gradient(&b->w, n, b->nk, b->bias, adds);
    if (!c->weight_grad[0]) return;
    input_tiles(p, c->in[0], at, n, b->c0, b->nc, b->zeros, &b->v, line, 1);
    products_weights(&b->v, &b->w, with[kind_of(line == LAST, false)],
                     with[kind_of(line == LAST, true)], b->nc, b->nk, b->u + SIDE * line * b->point,
                     b->point, adds);
}

static void weights_pair(const weights_block *b, const problem *p)
{
    const bool asked = b->call->weight_grad[0] != NULL;
    const int64_t tiles = p->down * p->across * b->call->rows;
    const int64_t blocks = ceil_of(tiles, WEIGHTS_TILES);
    for (int64_t i = 0, t = 0, n; i < blocks; i++, t += n) {
        const cursor at = cursor_at(p, t);
        const bool adds = t > 0;
        int64_t with[KINDS];
        n = tiles * (i + 1) / blocks - t;
        count_tiles(p, at, n, with);
        if (asked) weights_line(b, p, at, with, adds, 0);
        weights_line(b, p, at, with, adds, 1);
        if (!asked) continue;
        weights_line(b, p, at, with, adds, 2);
        weights_line(b, p, at, with, adds, 3);
#if TILE + TAPS > 5
        weights_line(b, p, at, with, adds, 4);
#endif
#if TILE + TAPS > 6
        weights_line(b, p, at, with, adds, 5);
#endif
    }
}

static void weights(const keel_call *c)
{
    const problem p = problem_of(c->node, false, TILE);
    weights_block b = { .call = c, .kernel = { .c = p.in.c, .k = p.out.c } };
    if (!weights_open(&b, SIDE, SIDE + 1)) return;
    do {
        weights_pair(&b, &p);
        weights_store(&b);
    } while (weights_next(&b));
}

/* Prepare -------------------------------------------------------------------------------------- */

/* The least outputs of an image. With fewer, a step of a few rows would save less time than it
 * takes to pack the weights, which at the points of larger tiles are 4 to 6.25 times as many. */
enum { PLACES_LEAST = TILE == 4 ? 196 : TILE == 3 ? 49 : 1 };

static inline double products_by(problem o, int64_t tile)
{
    o.tile = tile;
    o.down = ceil_of(o.out.h, tile);
    o.across = ceil_of(o.out.w, tile);
    return (double)tile_products(&o);
}

/* Where it is faster: products, those with the rests of tiles and vectors counted, are at most two
 * thirds of the direct ones. Measured against oneDNN on one core with AVX-512 over 16 to 512
 * channels: 1.4 to 2.2 times as fast where the ratio is 0.44 to 0.6, even at 0.65, slower above;
 * and with fewer than 16 channels transforms outweigh products.
 *
 * Windows of 3x3: tiles of 4x4 must do with three quarters of the products of tiles of 2x2.
 * Measured over 64 to 256 channels: 1.2 to 1.4 times as fast as small ones. Windows of 2x2: tiles
 * of 3x3 have the smaller error and fewer weights than those of 4x4, and are taken where they make
 * do with as many products, and for small images. */
static bool pays(const problem *o)
{
    const int64_t c = ceil_of(o->in.c, LANES) * LANES, k = ceil_of(o->out.c, PANEL) * PANEL;
    const int64_t places = o->out.h * o->out.w;
    const double products = (double)tile_products(o);
    if (o->in.c < 16 || places < PLACES_LEAST) return false;
    if (TILE == 4 && TAPS == 3 && products > 0.75 * products_by(*o, 2)) return false;
    if (TILE == 3 && places >= 196 && products > 1.05 * products_by(*o, 4)) return false;
    return products * (double)(c * k) <=
           0.65 * TAPS * TAPS * (double)places * (double)(o->in.c * o->out.c);
}

/* Measured; half as many tiles and twice as many are up to 10 % slower. */
static void plan_blocks(plan *pl, const problem *o, int64_t tiles)
{
#if TILE + TAPS == 5
    const int64_t most = o->in.c <= 56 ? 28 : o->in.c < 256 ? o->in.c / 2 : 128, columns = 64;
#else
    const int64_t c = o->in.c, columns = 128;
    const int64_t most = c <= 64 ? 64 : c < 256 ? 4096 / c : c < 1024 ? 16 : 56;
#endif
    pl->tiles = at_most(most, tiles);
    pl->columns = at_most(ceil_of(o->out.c, PANEL) * PANEL, columns);
}

static keel_status prepare(keel_prepare *p)
{
    KEEL_TRY(vector_prepare(p));
    if (p->pass > KEEL_WEIGHTS || p->rows < 1 || !has_tiles(p->node)) return KEEL_EUNSUP;
    const problem o = problem_of(p->node, p->pass == KEEL_BACKWARD, TILE);
    const int64_t tiles = o.down * o.across * p->rows;
    if (!pays(&o)) return KEEL_EUNSUP;
    /* over fewer channels the error is more than twice a plain sum's */
    if (SIDE != 4 && p->pass != KEEL_WEIGHTS && o.in.c < 64) return KEEL_EUNSUP;
    if (p->pass == KEEL_WEIGHTS) {
        weights_block b = { .kernel = { .c = o.in.c, .k = o.out.c } };
        p->scratch = weights_layout(&b, NULL, SIDE, SIDE + 1) * 4;
        return KEEL_OK;
    }
    plan *pl = keel_calloc(1, sizeof *pl);
    if (!pl) return KEEL_ENOMEM;
    plan_blocks(pl, &o, tiles);
    const keel_status s = kernel_derive(p, 0x77696e6f67726164u + 64 * TILE + 1024 * (3 - TAPS),
                                        true, o.in.c, o.out.c, &pl->packed);
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

#if TILE == 2
const keel_kernel VECTOR_KERNEL(conv2d_winograd) = {
    .name = "winograd_" VECTOR_NAME,
    .priority = VECTOR_PRIORITY(WINOGRAD),
#elif TILE == 3
const keel_kernel VECTOR_KERNEL(conv2d_winograd3_2x2) = {
    .name = "winograd3_2x2_" VECTOR_NAME,
    .priority = VECTOR_PRIORITY(WINOGRAD3_2X2),
#elif TAPS == 2
const keel_kernel VECTOR_KERNEL(conv2d_winograd4_2x2) = {
    .name = "winograd4_2x2_" VECTOR_NAME,
    .priority = VECTOR_PRIORITY(WINOGRAD4_2X2),
#else
const keel_kernel VECTOR_KERNEL(conv2d_winograd4) = {
    .name = "winograd4_" VECTOR_NAME,
    .priority = VECTOR_PRIORITY(WINOGRAD4),
#endif
    .needs = VECTOR_LEVEL,
    .op = &keel_op_conv2d,
    .prepare = prepare,
    .run = { [KEEL_FORWARD] = forward, [KEEL_BACKWARD] = backward, [KEEL_WEIGHTS] = weights },
    .release = keel_free,
};
