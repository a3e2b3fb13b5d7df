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
 * is a sum of blocks of tiles, in order from the first row of the call. */
#include "base/memory.h"
#include "ops/_vector.h"
#include "ops/args.h"

#ifdef __AVX512F__
enum { ROWS = 14, CHANNELS = 8 };
#else
enum { ROWS = 5, CHANNELS = 4 };
#endif
/* A panel is two vectors of columns; ROWS x 2 or CHANNELS x 2 sums stay in registers. */
enum { POINTS = 16, PANEL = 2 * LANES };
#define INLINE static inline __attribute__((always_inline))
/* Unrolled, else sums would live in memory and not in registers. */
#define EACH(i, n) _Pragma("GCC unroll 16") for (int i = 0; i < (n); i++)

static int64_t ceil_of(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit;
}

static int64_t at_most(int64_t n, int64_t limit)
{
    return n < limit ? n : limit;
}

/* Tiles ---------------------------------------------------------------------------------------- */

typedef struct image { /* of one row: [h, w, c] */
    int64_t h, w, c;
} image;

/* What is convolved, and where its tiles are. Tile (i, j) of a row makes out[2 i .., 2 j ..] from
 * the 4x4 pixels of in at [2 i - top .., 2 j - left ..]; what is outside of the images is zero, or
 * not written. */
typedef struct problem {
    image in, out;
    int64_t top, left;
    int64_t down, across; /* tiles of a row */
} problem;

static problem problem_of(const keel_node *n, bool backward)
{
    const keel_conv2d_args *a = n->args;
    const int64_t *x = n->in[0].shape.dim, *y = n->out.shape.dim;
    const image in = { x[0], x[1], x[2] }, out = { y[0], y[1], y[2] };
    problem p = { .in = in, .out = out, .top = a->pad[0], .left = a->pad[2] };
    if (backward) p = (problem){ .in = out, .out = in, .top = 2 - p.top, .left = 2 - p.left };
    p.down = ceil_of(p.out.h, 2);
    p.across = ceil_of(p.out.w, 2);
    return p;
}

static int64_t pixels(const image *m)
{
    return m->h * m->w * m->c;
}

typedef struct cursor { /* a tile of a call */
    int64_t row, i, j;
} cursor;

static cursor cursor_at(const problem *p, int64_t tile)
{
    const int64_t each = p->down * p->across, place = tile % each;
    return (cursor){ tile / each, place / p->across, place % p->across };
}

static void cursor_next(const problem *p, cursor *at)
{
    if (++at->j < p->across) return;
    at->j = 0;
    if (++at->i < p->down) return;
    at->i = 0;
    at->row++;
}

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

/* Where the 2x2 outputs of a tile are; false: there is no such pixel. */
static void outputs_of(const problem *p, const cursor *c, bool there[4], int64_t at[4])
{
    const int64_t h = 2 * c->i, w = 2 * c->j;
    EACH(i, 2) EACH(j, 2)
    {
        there[2 * i + j] = h + i < p->out.h && w + j < p->out.w;
        at[2 * i + j] = c->row * pixels(&p->out) + ((h + i) * p->out.w + w + j) * p->out.c;
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

INLINE void kernel_points(const vf g[3][3], float *out, int64_t point)
{
    vf t[3][4], column[3], u[4];
    EACH(i, 3) kernel_line(g[i], t[i]);
    EACH(j, 4)
    {
        EACH(i, 3) column[i] = t[i][j];
        kernel_line(column, u);
        EACH(i, 4) vf_store(out + (4 * i + j) * point, u[i]);
    }
}

static void pack_straight(const packer *k, const float *w, float *out)
{
    const int64_t point = packed_floats(k->c, k->k), lines = ceil_of(k->c, LANES) * LANES;
    for (int64_t column = 0; column < ceil_of(k->k, PANEL) * PANEL; column += LANES)
        for (int64_t c = 0; c < lines; c++) {
            const vm m = vm_first(c < k->c && column < k->k ? k->k - column : 0);
            const float *at = w + c * k->k + column;
            float *to = out + (column / PANEL * lines + c) * PANEL + column % PANEL;
            vf g[3][3];
            EACH(i, 3) EACH(j, 3) g[i][j] = vf_load_some(m, at + (3 * i + j) * k->c * k->k);
            kernel_points((const vf(*)[3])g, to, point);
        }
}

/* [LANES][LANES] pieces of each tap are transposed on the way. */
static void pack_turned(const packer *k, const float *w, float *out)
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
                kernel_points((const vf(*)[3])g, to, point);
            }
        }
}

static void refresh(const keel_derived *d, const void *weight)
{
    const packer *k = d->plan;
    (k->turned ? pack_turned : pack_straight)(k, weight, d->data);
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
    const keel_conv2d_args *a = p->node->args;
    const int64_t *w = p->node->weight[0].shape.dim;
    KEEL_TRY(vector_prepare(p));
    if (p->pass > KEEL_BACKWARD || p->rows < 1) return KEEL_EUNSUP;
    if (w[0] != 3 || w[1] != 3 || a->groups != 1 || a->strides[0] != 1 || a->strides[1] != 1 ||
        a->dilation[0] != 1 || a->dilation[1] != 1)
        return KEEL_EUNSUP;
    const problem o = problem_of(p->node, p->pass == KEEL_BACKWARD);
    const int64_t tiles = o.down * o.across * p->rows;
    if (!pays(&o)) return KEEL_EUNSUP;
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
    .run = { [KEEL_FORWARD] = forward, [KEEL_BACKWARD] = backward },
    .release = keel_free,
};
