/* conv2d with 1x1 windows, without groups or padding, where pays() says that it is faster than
 * oneDNN: products of matrices, of which a row is a place that a window looks at.
 *
 *     forward   y  [places, K] = x  [places, C] W  [C, K] + b
 *     backward  dx [places, C] = dy [places, K] Wt [K, C]; 0 where no window starts
 *     weights   dW [C, K] = xt [C, places] dy [places, K]; without strides
 *
 * A block of rows x columns of sums stays in registers while the inner dim runs. Forward and
 * backward read W packed in panels of PANEL columns, a line for each channel. GROUP places are
 * multiplied by a stretch of INNER lines of a panel while that is in the cache. With the first
 * panel each block prefetches the places that are AHEAD of it, for it would wait for memory
 * otherwise. A sum takes its channels one after the other, whatever places are beside it.
 *
 * A weight gradient takes a stretch of places at a time, from the first row of the call on. The
 * sums of a stretch begin at 0 and are added to those of the stretches before. x and dy are read in
 * place, or packed where there are many channels. In place, one operand is read by vectors, its
 * whole rows in turn, and a wide one would not stay in the cache. So where dy is the wider one, the
 * transpose is summed. */
#include "ops/x86/_panels.h"
#include "ops/args.h"

KEEL_USES_OP(conv2d);

/* GROUP and STRETCH divide the numbers of places of the usual images: 56x56, 28x28, 14x14. A weight
 * gradient of PACKED values or more reads packed operands: of the smaller operand up to WHOLE
 * values at a time, but at least those of STRETCH places. */
enum { GROUP = 196, STRETCH = 98, AHEAD = 24, PACKED = 1 << 18, WHOLE = 98 << 10 };

/* Prepare -------------------------------------------------------------------------------------- */

typedef struct plan {
    const keel_derived *packed; /* the weights; NULL in the pass that makes their gradient */
    int64_t c, k;               /* channels of x and of y */
    int64_t x_row, places;      /* values of an image of x; places of an image of y */
    bool strided;
    int64_t *place; /* strided: where in an image of x the window of each place is, [places + 1] */
    /* Of weight gradients: */
    bool packs;       /* operands are packed first */
    bool turns;       /* the sums are those of the transpose */
    int64_t stretch;  /* places that are summed at a time */
    int64_t apart_at; /* floats before the place in scratch of a gradient that is added later */
} plan;

static void release(void *p)
{
    plan *pl = p;
    if (pl) keel_free(pl->place);
    keel_free(pl);
}

static keel_status make_plan(plan *pl, keel_prepare *p)
{
    const keel_conv2d_args *a = p->node->args;
    const int64_t *x = p->node->in[0].shape.dim, *y = p->node->out[0].shape.dim;
    *pl = (plan){ .c = x[2], .k = y[2], .x_row = x[0] * x[1] * x[2], .places = y[0] * y[1] };
    pl->strided = pl->x_row != pl->places * pl->c;
    if (pl->strided) {
        pl->place = keel_calloc((size_t)pl->places + 1, sizeof *pl->place);
        if (!pl->place) return KEEL_ENOMEM;
        for (int64_t i = 0; i < pl->places; i++)
            pl->place[i] = (i / y[1] * a->strides[0] * x[1] + i % y[1] * a->strides[1]) * pl->c;
    }
    if (p->pass != KEEL_WEIGHTS) {
        const panels s = { 1, pl->c, pl->k, p->pass == KEEL_BACKWARD };
        return panels_derive(p, &s, &pl->packed);
    }
    const int64_t small = up(at_most(pl->c, pl->k), PANEL);
    pl->packs = pl->c * pl->k >= PACKED;
    pl->stretch = STRETCH;
    for (int i = 0; i < 2 && pl->packs && 2 * pl->stretch * small <= WHOLE; i++) pl->stretch *= 2;
    if (pl->packs) pl->apart_at = pl->stretch * (PANEL + small);
    p->scratch = pl->apart_at * (int64_t)sizeof(float);
    pl->turns = !pl->packs && pl->c >= 64 && pl->c < pl->k;
    if (p->weight_adds || pl->turns) p->scratch += (pl->c + 1) * pl->k * (int64_t)sizeof(float);
    return KEEL_OK;
}

/* Where this kernel is faster than oneDNN. Measured on one core and on two, packing included;
 * figures are oneDNN's time divided by ours. With AVX-512:
 *
 *     forward and backward, few channels on many places (memory bound)    1.05 to 1.3
 *     forward and backward of other shapes                                0.99 to 1.05
 *     backward with strides                                               1.1 to 1.6
 *     backward that adds, for which oneDNN makes a second pass            1.03 to 1.2
 *     backward with a large W, which oneDNN transposes slowly             1.0 to 1.9
 *     weight gradient of few channels (memory bound)                      1.1 to 1.25
 *     weight gradient of many channels, packed, but very many outputs     1.05 to 1.2
 *
 * With AVX2 only backward with strides is faster, 1.1 to 1.9. Elsewhere oneDNN is as fast, or
 * faster. */
static bool pays(const keel_prepare *p)
{
    const keel_conv2d_args *a = p->node->args;
    const int64_t c = p->node->weight[0].shape.dim[2], k = p->node->weight[0].shape.dim[3];
    const bool strided = a->strides[0] > 1 || a->strides[1] > 1;
    if (strided && p->pass == KEEL_BACKWARD) return true;
    if (LANES < 16) return false;
    if (p->pass != KEEL_WEIGHTS && c >= 64 && k >= 64) return true;
    if (p->pass == KEEL_FORWARD) return strided;
    if (p->pass == KEEL_BACKWARD) return (p->in_adds && c >= 64) || c * k > 1 << 14;
    if (strided) return false;
    if (c * k >= PACKED) return c >= 64 && k >= 64 && k <= 1024;
    return (c >= 64 && k >= 64 && c * k <= 1 << 14) || (k <= 32 && k < c);
}

static keel_status prepare(keel_prepare *p)
{
    const keel_conv2d_args *a = p->node->args;
    const int64_t *w = p->node->weight[0].shape.dim;
    KEEL_TRY(vector_prepare(p));
    if (p->pass > KEEL_WEIGHTS || p->rows < 1 || w[0] != 1 || w[1] != 1 || a->groups != 1 ||
        a->pad[0] || a->pad[1] || a->pad[2] || a->pad[3] || !pays(p))
        return KEEL_EUNSUP;
    plan *pl = keel_calloc(1, sizeof *pl);
    if (!pl) return KEEL_ENOMEM;
    const keel_status s = make_plan(pl, p);
    if (s < 0)
        release(pl);
    else
        p->plan = pl;
    return s;
}

/* Forward and backward ------------------------------------------------------------------------- */

static void forward(const keel_call *c)
{
    const plan *pl = c->plan;
    const int64_t images = pl->strided ? c->rows : 1;
    const int64_t places = pl->strided ? pl->places : pl->places * c->rows;
    for (int64_t r = 0; r < images; r++)
        for (int64_t i = 0; i < places; i += GROUP) {
            const product p = { .a = (const float *)c->in[0] + r * pl->x_row +
                                     (pl->strided ? 0 : i * pl->c),
                                .a_row = pl->c,
                                .a_place = pl->strided ? pl->place + i : NULL,
                                .out = (float *)c->out[0] + (r * places + i) * pl->k,
                                .out_row = pl->k,
                                .start = c->node->n_weight > 1 ? c->weight[1] : NULL,
                                .ahead = pl->strided ? 0 : AHEAD };
            multiply_panels(pl->packed, &p, at_most(places - i, GROUP), 0, pl->c);
        }
}

static void backward(const keel_call *c)
{
    const plan *pl = c->plan;
    const int64_t images = pl->strided ? c->rows : 1;
    const int64_t places = pl->strided ? pl->places : pl->places * c->rows;
    float *dx = c->in_grad[0];
    if (!dx) return;
    for (int64_t r = 0; r < images; r++, dx += pl->x_row) {
        if (pl->strided && !c->in_adds[0]) memset(dx, 0, (size_t)pl->x_row * sizeof *dx);
        for (int64_t i = 0; i < places; i += GROUP) {
            const product p = { .a = (const float *)c->out_grad[0] + (r * places + i) * pl->k,
                                .a_row = pl->k,
                                .out = dx + (pl->strided ? 0 : i * pl->c),
                                .out_row = pl->c,
                                .out_place = pl->strided ? pl->place + i : NULL,
                                .adds = c->in_adds[0],
                                .ahead = AHEAD };
            multiply_panels(pl->packed, &p, at_most(places - i, GROUP), 0, pl->k);
        }
    }
}

/* Weight gradients ----------------------------------------------------------------------------- */

/* One of the two operands of a weight gradient, from the first place of a stretch on. */
typedef struct side {
    const float *at;
    int64_t channels;
} side;

/* Sets dw [a's channels, w's], or adds to it, from n places of w; `more`: prefetches the places
 * after them. */
static void add_in_place(const side *a, const side *w, int64_t n, bool more, float *dw, bool adds)
{
    const int64_t a_bytes = a->channels * (int64_t)sizeof(float);
    const int64_t w_bytes = w->channels * (int64_t)sizeof(float);
    for (int64_t k = 0; k < w->channels; k += PANEL) {
        const int64_t width = at_most(w->channels - k, PANEL);
        product p = { .a = a->at,
                      .a_row = 1,
                      .a_step = a->channels,
                      .w = w->at + k,
                      .w_row = w->channels,
                      .inner = n,
                      .out = dw + k,
                      .out_row = w->channels,
                      .adds = adds };
        if (more)
            p.ask[0] =
                (ask){ (const char *)(w->at + n * w->channels + k), w_bytes, up(width, 16) / 16 };
        if (more && k == 0)
            p.ask[1] =
                (ask){ (const char *)(a->at + n * a->channels), a_bytes, up(a->channels, 16) / 16 };
        multiply(&p, a->channels, width);
    }
}

/* Sets dw [c, k], or adds to it, from the transpose of t [k, c]. */
static void add_turned(float *dw, const float *t, int64_t c, int64_t k, bool adds)
{
    for (int64_t i = 0; i < c; i += LANES)
        for (int64_t j = 0; j < k; j += LANES) {
            const vm columns = vm_first(c - i), m = vm_first(k - j);
            vf a[LANES];
            EACH(r, LANES)
                a[r] = j + r < k ? vf_load_some(columns, t + (j + r) * c + i) : vf_zero();
            turn(a);
            EACH(r, LANES)
                if (i + r < c) {
                    float *to = dw + (i + r) * k + j;
                    vf_store_some(m, to, adds ? vf_add(vf_load_some(m, to), a[r]) : a[r]);
                }
        }
}

/* Channels [j, j + at most PANEL) of n places, as whole vectors for each place. */
static void pack_places(float *to, const side *s, int64_t n, int64_t j)
{
    const int64_t width = at_most(s->channels - j, PANEL);
    const float *from = s->at + j;
    for (int64_t i = 0; i < n; i++, from += s->channels, to += up(width, LANES))
        if (width == PANEL)
            EACH(v, VECTORS) vf_store(to + v * LANES, vf_load(from + v * LANES));
        else
            for (int64_t v = 0; v < width; v += LANES)
                vf_store(to + v, vf_load_some(vm_first(width - v), from + v));
}

/* What a block prefetches while it runs: the panel of the larger side that is packed next and, bit
 * by bit, the next n places of the smaller side. `more`: there are such places. */
static void ask_for(product *p, const side *large, const side *small, int64_t n, bool more,
                    int64_t l, int64_t j)
{
    const int64_t inner = up(small->channels, PANEL) / PANEL, lines = up(small->channels, 16) / 16;
    const int64_t rounds = up(large->channels, PANEL) / PANEL * inner;
    const int64_t round = l / PANEL * inner + j / PANEL;
    const int64_t from = lines * round / rounds, to = lines * (round + 1) / rounds;
    const bool last = l + PANEL >= large->channels;
    if (j == 0 && (!last || more))
        p->ask[0] = (ask){ (const char *)(large->at + (last ? n * large->channels : l + PANEL)),
                           large->channels * (int64_t)sizeof(float), PANEL / 16 };
    if (more)
        p->ask[1] = (ask){ (const char *)(small->at + n * small->channels + from * 16),
                           small->channels * (int64_t)sizeof(float), to - from };
}

/* The same for operands that are packed in panels: the smaller side whole, the larger a panel at a
 * time. Read in place, lines that are a power of two apart would displace each other in the cache.
 */
static void add_packed(const plan *pl, const side *x, const side *dy, int64_t n, bool more,
                       float *dw, bool adds, float *scratch)
{
    const bool turned = pl->c < pl->k;
    const side *large = turned ? dy : x, *small = turned ? x : dy;
    float *const part = scratch, *const whole = scratch + pl->stretch * PANEL;
    for (int64_t j = 0; j < small->channels; j += PANEL) pack_places(whole + j * n, small, n, j);
    for (int64_t l = 0; l < large->channels; l += PANEL) {
        pack_places(part, large, n, l);
        for (int64_t j = 0; j < small->channels; j += PANEL) {
            const int64_t c = turned ? j : l, k = turned ? l : j;
            const int64_t rows = at_most(pl->c - c, PANEL), width = at_most(pl->k - k, PANEL);
            product p = { .a = turned ? whole + j * n : part,
                          .a_row = 1,
                          .a_step = up(rows, LANES),
                          .w = turned ? part : whole + j * n,
                          .w_row = up(width, LANES),
                          .inner = n,
                          .out = dw + c * pl->k + k,
                          .out_row = pl->k,
                          .adds = adds };
            ask_for(&p, large, small, n, more, l, j);
            multiply(&p, rows, width);
        }
    }
}

static void weights(const keel_call *c)
{
    const plan *pl = c->plan;
    const int64_t places = c->rows * pl->places;
    side x = { c->in[0], pl->c }, dy = { c->out_grad[0], pl->k };
    float *const to[] = { c->weight_grad[0], c->node->n_weight > 1 ? c->weight_grad[1] : NULL };
    float *const apart = (float *)c->scratch + pl->apart_at;
    float *const dw = to[0] && (c->weight_adds || pl->turns) ? apart : to[0];
    float *const db = to[1] && c->weight_adds ? apart + pl->c * pl->k : to[1];
    if (db) memset(db, 0, (size_t)pl->k * sizeof *db);
    for (int64_t i = 0, n; i < places; i += n, x.at += n * pl->c, dy.at += n * pl->k) {
        n = at_most(places - i, pl->stretch);
        const bool more = i + n < places;
        if (dw && pl->packs)
            add_packed(pl, &x, &dy, n, more, dw, i > 0, c->scratch);
        else if (dw)
            add_in_place(pl->turns ? &dy : &x, pl->turns ? &x : &dy, n, more, dw, i > 0);
        if (db) add_bias(db, dy.at, n, pl->k);
    }
    if (pl->turns && dw)
        add_turned(to[0], dw, pl->c, pl->k, c->weight_adds);
    else if (c->weight_adds && dw)
        VECTOR_MOVE(to[0], dw, pl->c * pl->k, true);
    if (c->weight_adds && db) VECTOR_MOVE(to[1], db, pl->k, true);
}

const keel_kernel VECTOR_KERNEL(conv2d_1x1) = {
    .op = &keel_op_conv2d,
    .name = "1x1_" VECTOR_NAME,
    .needs = VECTOR_LEVEL,
    .priority = VECTOR_PRIORITY(OWN_1X1),
    .prepare = prepare,
    .run = { [KEEL_FORWARD] = forward, [KEEL_BACKWARD] = backward, [KEEL_WEIGHTS] = weights },
    .release = release,
};
