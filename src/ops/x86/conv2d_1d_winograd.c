/* conv2d over one dim with windows of 3, stride 1, by Winograd's F(4, 3): 6 products for each tile
 * of 4 places instead of 12. Sequences are [T, 1, C] or [1, T, C].
 *
 *     forward   y  = At [ (G g) . (Bt d) ], summed over channels; d the 6 places of a tile
 *     backward  the same on dy, with the taps reversed and C, K exchanged
 *     weights   dg = Gt [ (Bt d) . (A dy) ], summed over tiles and rows
 *
 * At each point the elementwise product, summed over channels, is a product of matrices: tiles by
 * channels times channels by filters. So a kernel at its points is packed as one of 6 taps.
 *
 * A block is a stretch of tiles of one row; it is transformed, multiplied and transformed back
 * while it lies in the cache. The bits of a row do not depend on the rows beside it; a weight
 * gradient is a sum of blocks, in order from the first row of the call. */
#include "ops/x86/_winograd_1d.h"
#include "ops/x86/_panels.h"

KEEL_USES_OP(conv2d);

/* A block of forward and backward has as many tiles as have FORWARD_FLOATS at their points, before
 * and after the product, and at least FORWARD_TILES; with a quarter and with eight times that it is
 * as fast or slower. WEIGHTS_TILES: of a block of a weight gradient, which reads and writes the
 * gradient at its points once. AHEAD: tiles; the lines of a place are too short a run for the
 * processor to predict the next one. */
enum { FORWARD_FLOATS = 16 << 10, FORWARD_TILES = 24, WEIGHTS_TILES = 64, AHEAD = 4 };

typedef struct plan {
    const keel_derived *packed; /* the kernel at its points; NULL: weights */
    sequence s;
    int64_t most; /* tiles of a block */
} plan;

/* Transformed values [point][tile][channels]; lines of a point are an odd number of vectors apart,
 * else a column of them would want the same few places of the cache. */
typedef struct points {
    float *data;
    int64_t row, point; /* floats from one to the next */
} points;

static points points_of(float *data, int64_t channels, int64_t tiles)
{
    const int64_t row = (up(channels, LANES) / LANES | 1) * LANES;
    return (points){ data, row, tiles * row };
}

/* An address to prefetch, which may be outside of the sequences. */
INLINE const float *ahead_of(const float *at, int64_t floats)
{
    return (const float *)((uintptr_t)at + (uintptr_t)floats * sizeof *at);
}

INLINE void ask_for(const float *at, int64_t floats)
{
    __builtin_prefetch(ahead_of(at, floats), 0, 3);
}

/* Transforms ----------------------------------------------------------------------------------- */

/* Bt d of n tiles from tile t on. */
static void input_tiles(const plan *pl, const float *x, int64_t t, int64_t n, const float *zeros,
                        const points *v)
{
    float *out = v->data;
    for (int64_t i = 0; i < n; i++, out += v->row) {
        const int64_t first = TILE * (t + i) - pl->s.pad;
        const float *at[SIDE];
        EACH(j, SIDE)
            at[j] = first + j >= 0 && first + j < pl->s.from ? x + (first + j) * pl->s.c : zeros;
        VECTOR_EACH(c, pl->s.c, m, {
            vf d[SIDE], p[SIDE];
            EACH(j, TILE) ask_for(at[j], AHEAD * TILE * pl->s.c + c);
            EACH(j, SIDE) d[j] = vf_load_some(m, at[j] + c);
            input_points(d, p);
            EACH(j, SIDE) vf_store(out + j * v->point + c, p[j]);
        });
    }
}

/* At m of n tiles, plus the bias, to places 4 t and on. */
static void output_tiles(const plan *pl, const points *from, int64_t t, int64_t n,
                         const float *bias, float *y, bool adds)
{
    const float *in = from->data;
    for (int64_t i = 0; i < n; i++, in += from->row) {
        const int64_t first = TILE * (t + i), there = at_most(pl->s.to - first, TILE);
        float *to = y + first * pl->s.k;
        VECTOR_EACH(k, pl->s.k, m, {
            const vf b = bias ? vf_load_some(m, bias + k) : vf_zero();
            vf p[SIDE], out[TILE];
            EACH(j, SIDE) p[j] = vf_load(in + j * from->point + k);
            output_points(p, out);
            EACH(j, TILE) fetch_to_write(ahead_of(to + j * pl->s.k, AHEAD * TILE * pl->s.k + k));
            EACH(j, TILE) {
                float *place = to + j * pl->s.k + k;
                if (j < there)
                    vf_store_some(m, place, vf_add(out[j], adds ? vf_load_some(m, place) : b));
            }
        });
    }
}

/* A dy of n tiles from tile t on, as panels: [point][panel][tile][columns of the panel]. */
static void gradient_tiles(const plan *pl, const float *dy, int64_t t, int64_t n,
                           const float *zeros, float *out)
{
    const int64_t point = n * up(pl->s.k, LANES);
    for (int64_t i = 0; i < n; i++) {
        const int64_t first = TILE * (t + i);
        const float *at[TILE];
        EACH(j, TILE) at[j] = first + j < pl->s.to ? dy + (first + j) * pl->s.k : zeros;
        VECTOR_EACH(k, pl->s.k, m, {
            const int64_t panel = k / PANEL * PANEL,
                          width = at_most(up(pl->s.k - panel, LANES), PANEL);
            float *to = out + panel * n + i * width + k - panel;
            vf y[TILE], p[SIDE];
            EACH(j, TILE) ask_for(at[j], AHEAD * TILE * pl->s.k + k);
            EACH(j, TILE) y[j] = vf_load_some(m, at[j] + k);
            gradient_points(y, p);
            EACH(j, SIDE) vf_store(to + j * point, p[j]);
        });
    }
}

/* The kernel at its points --------------------------------------------------------------------- */

/* A line of a panel at each point, from the three taps of a line of the kernel. */
INLINE void pack_line(const vf g[3], float *to, int64_t point)
{
    vf u[SIDE];
    kernel_points(g, u);
    EACH(x, SIDE) vf_store(to + x * point, u[x]);
}

/* Panels of the kernel w [3, c, k] as if it had a tap for each point; s->turned: the taps reversed,
 * and each turned. */
static void refresh(const keel_derived *d, const void *weight)
{
    const panels *s = d->plan;
    const float *w = weight;
    float *to = d->data;
    const int64_t n = panel_columns(s), lines = s->turned ? s->k : s->c, tap = s->c * s->k;
    for (int64_t j = 0; j < n; j += PANEL) {
        const int64_t columns = at_most(n - j, PANEL), width = up(columns, LANES);
        for (int64_t v = 0; v < width; v += LANES)
            for (int64_t i = 0; i < lines; i += s->turned ? LANES : 1) {
                const float *at = s->turned ? w + (j + v) * s->k + i : w + i * s->k + j + v;
                float *out = to + i * width + v;
                const vm m = vm_first(s->turned ? lines - i : columns - v);
                vf g[3], piece[3][LANES];
                if (!s->turned) {
                    EACH(t, 3) g[t] = vf_load_some(m, at + t * tap);
                    pack_line(g, out, lines * width);
                    continue;
                }
                EACH(t, 3) {
                    EACH(r, LANES)
                        piece[t][r] = v + r < columns
                                          ? vf_load_some(m, at + (2 - t) * tap + r * s->k)
                                          : vf_zero();
                    turn(piece[t]);
                }
                for (int64_t r = 0; r < LANES && i + r < lines; r++) {
                    EACH(t, 3) g[t] = piece[t][r];
                    pack_line(g, out + r * width, lines * width);
                }
            }
        to += SIDE * lines * width;
    }
}

/* Forward and backward ------------------------------------------------------------------------- */

static void convolve(const keel_call *call, const float *x, const float *bias, float *y, bool adds)
{
    const plan *pl = call->plan;
    const int64_t stretches = (pl->s.tiles + pl->most - 1) / pl->most;
    float *const zeros = call->scratch;
    const points v = points_of(zeros + up(pl->s.c, LANES), pl->s.c, pl->most);
    const points m = points_of(v.data + SIDE * v.point, pl->s.k, pl->most);
    memset(zeros, 0, (size_t)up(pl->s.c, LANES) * sizeof *zeros);
    for (int64_t r = 0; r < call->rows; r++, x += pl->s.from * pl->s.c, y += pl->s.to * pl->s.k)
        for (int64_t b = 0, t = 0, n; b < stretches; b++, t += n) {
            n = pl->s.tiles * (b + 1) / stretches - t;
            input_tiles(pl, x, t, n, zeros, &v);
            for (int64_t p = 0; p < SIDE; p++) {
                const product to = { .a = v.data + p * v.point,
                                     .a_row = v.row,
                                     .out = m.data + p * m.point,
                                     .out_row = m.row };
                multiply_panels(pl->packed, &to, n, p * pl->s.c, pl->s.c);
            }
            output_tiles(pl, &m, t, n, bias, y, adds);
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

/* Weight gradients ----------------------------------------------------------------------------- */

/* u [point][c][k] += the products of n tiles. */
static void add_products(const plan *pl, const points *v, const float *w, int64_t n, float *u)
{
    for (int64_t p = 0; p < SIDE; p++)
        for (int64_t k = 0; k < pl->s.k; k += PANEL) {
            const int64_t columns = at_most(pl->s.k - k, PANEL);
            const product to = { .a = v->data + p * v->point,
                                 .a_row = 1,
                                 .a_step = v->row,
                                 .w = w,
                                 .w_row = up(columns, LANES),
                                 .inner = n,
                                 .out = u + p * pl->s.c * pl->s.k + k,
                                 .out_row = pl->s.k,
                                 .adds = true };
            multiply(&to, pl->s.c, columns);
            w += n * up(columns, LANES);
        }
}

/* dw [3, c, k] is, or grows by, Gt u. */
static void store_gradient(const float *u, int64_t count, float *dw, bool adds)
{
    VECTOR_EACH(i, count, m, {
        vf p[SIDE], g[3];
        EACH(x, SIDE) p[x] = vf_load_some(m, u + x * count + i);
        kernel_gradient_points(p, g);
        EACH(t, 3) {
            float *to = dw + t * count + i;
            vf_store_some(m, to, adds ? vf_add(vf_load_some(m, to), g[t]) : g[t]);
        }
    });
}

/* Scratch of a weight gradient: the parts begin at these floats. */
typedef struct parts {
    int64_t bias, u, v, w, all;
} parts;

static parts parts_of(const plan *pl)
{
    parts s = { .bias = up(pl->s.c > pl->s.k ? pl->s.c : pl->s.k, LANES) }; /* before it: zeros */
    s.u = s.bias + up(pl->s.k, LANES);
    s.v = s.u + up(SIDE * pl->s.c * pl->s.k, LANES);
    s.w = s.v + SIDE * points_of(NULL, pl->s.c, pl->most).point;
    s.all = s.w + SIDE * pl->most * up(pl->s.k, LANES);
    return s;
}

static void weights(const keel_call *c)
{
    const plan *pl = c->plan;
    const parts s = parts_of(pl);
    const int64_t stretches = (pl->s.tiles + pl->most - 1) / pl->most;
    float *const zeros = c->scratch, *const bias = zeros + s.bias, *const u = zeros + s.u;
    float *const dw = c->weight_grad[0], *const db =
                                             c->node->n_weight > 1 ? c->weight_grad[1] : NULL;
    const points v = points_of(zeros + s.v, pl->s.c, pl->most);
    const float *x = c->in[0], *dy = c->out_grad[0];
    memset(zeros, 0, (size_t)s.v * sizeof *zeros);
    for (int64_t r = 0; r < c->rows; r++, x += pl->s.from * pl->s.c, dy += pl->s.to * pl->s.k) {
        for (int64_t b = 0, t = 0, n; dw && b < stretches; b++, t += n) {
            n = pl->s.tiles * (b + 1) / stretches - t;
            input_tiles(pl, x, t, n, zeros, &v);
            gradient_tiles(pl, dy, t, n, zeros, zeros + s.w);
            add_products(pl, &v, zeros + s.w, n, u);
        }
        if (db) add_bias(bias, dy, pl->s.to, pl->s.k);
    }
    if (dw) store_gradient(u, pl->s.c * pl->s.k, dw, c->weight_adds);
    if (db) VECTOR_MOVE(db, bias, pl->s.k, c->weight_adds);
}

/* Prepare -------------------------------------------------------------------------------------- */

/* Where it is faster: with fewer channels the transforms outweigh the products, and short rows have
 * tiles that are partly empty. */
static bool pays(const sequence *s)
{
    return s->c >= 16 && s->k >= 16 && s->c * s->k >= 512 && SIDE * s->tiles <= 2 * s->to;
}

static keel_status prepare(keel_prepare *p)
{
    sequence s;
    KEEL_TRY(vector_prepare(p));
    if (p->pass > KEEL_WEIGHTS || p->rows < 1 ||
        !sequence_of(&s, p->node, p->pass == KEEL_BACKWARD) || !pays(&s))
        return KEEL_EUNSUP;
    plan *pl = keel_calloc(1, sizeof *pl);
    if (!pl) return KEEL_ENOMEM;
    pl->s = s;
    p->plan = pl;
    if (p->pass == KEEL_WEIGHTS) {
        pl->most = at_most(pl->s.tiles, WEIGHTS_TILES);
        p->scratch = parts_of(pl).all * (int64_t)sizeof(float);
        return KEEL_OK;
    }
    const int64_t each = SIDE * (points_of(NULL, pl->s.c, 1).row + points_of(NULL, pl->s.k, 1).row);
    const int64_t most = FORWARD_FLOATS / each;
    pl->most = at_most(pl->s.tiles, most < FORWARD_TILES ? FORWARD_TILES : most);
    p->scratch = (up(pl->s.c, LANES) + pl->most * each) * (int64_t)sizeof(float);
    const bool turned = p->pass == KEEL_BACKWARD;
    const int64_t c = turned ? pl->s.k : pl->s.c, k = turned ? pl->s.c : pl->s.k;
    const panels kernel = { SIDE, c, k, turned };
    const keel_status status = panels_derive_by(p, &kernel, refresh, &pl->packed);
    if (status < 0) {
        keel_free(pl);
        p->plan = NULL;
    }
    return status;
}

const keel_kernel VECTOR_KERNEL(conv2d_1d_winograd) = {
    .op = &keel_op_conv2d,
    .name = "1d_winograd_" VECTOR_NAME,
    .needs = VECTOR_LEVEL,
    .priority = VECTOR_PRIORITY(WINOGRAD_1D),
    .prepare = prepare,
    .run = { [KEEL_FORWARD] = forward, [KEEL_BACKWARD] = backward, [KEEL_WEIGHTS] = weights },
    .release = keel_free,
};
