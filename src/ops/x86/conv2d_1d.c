/* conv2d over one dim, in float32: sequences [T, 1, C] and windows [taps, 1], or [1, T, C] and
 * [1, taps], with any dilation and padding, without strides and groups. What a window looks at are
 * taps C neighbours in memory, and the next place's begin C further on. So all passes are products
 * of matrices whose rows overlap, and x is read in place, as is dy in backward:
 *
 *     forward   y  [places, K] = windows of x  [places, taps C] W  [taps C, K] + b
 *     backward  dx [places, C] = windows of dy [places, taps K] Wt [taps K, C], taps reversed
 *     weights   dW [taps C, K] = windows of x, transposed [taps C, places] dy [places, K]
 *
 * Windows that hang over an end, and all windows with a dilation, are multiplied tap by tap, and a
 * tap outside is left out.
 *
 * Forward and backward read W packed in panels, GROUP places at a time. A weight gradient takes a
 * stretch of places of a row at a time, from the first row of the call on. The sums of a stretch
 * begin at 0 and are added to those of the stretches before. */
#include "ops/x86/_panels.h"
#include "ops/args.h"

KEEL_USES_OP(conv2d);

/* STRETCH: places of a weight gradient's panel of dy, which has to stay in the first-level cache,
 * but each stretch reads and writes all of dW once. */
enum { GROUP = 192, STRETCH = 384 * 16 / PANEL };

typedef struct plan {
    const keel_derived *packed; /* the weights; NULL in the pass that makes their gradient */
    int64_t taps, apart;        /* places between a window's taps: the dilation */
    int64_t c, k;               /* channels of x and of y */
    int64_t x_places, y_places, pad;
} plan;

/* Prepare -------------------------------------------------------------------------------------- */

static bool make_plan(plan *pl, const keel_node *n)
{
    const keel_conv2d_args *a = n->args;
    const int64_t *x = n->in[0].shape.dim, *y = n->out[0].shape.dim, *w = n->weight[0].shape.dim;
    for (int d = 0; d < 2; d++) {
        const int64_t *pad = a->pad + 2 * d, *other = a->pad + 2 - 2 * d;
        *pl = (plan){ .taps = w[d],
                      .apart = a->dilation[d],
                      .c = x[2],
                      .k = y[2],
                      .x_places = x[d],
                      .y_places = y[d],
                      .pad = pad[0] };
        if (x[1 - d] == 1 && w[1 - d] == 1 && other[0] == 0 && other[1] == 0 && w[d] > 1 &&
            a->strides[d] == 1)
            return a->groups == 1;
    }
    return false;
}

static keel_status prepare(keel_prepare *p)
{
    plan made;
    KEEL_TRY(vector_prepare(p));
    if (p->pass > KEEL_WEIGHTS || p->rows < 1 || !make_plan(&made, p->node)) return KEEL_EUNSUP;
    plan *pl = keel_calloc(1, sizeof *pl);
    if (!pl) return KEEL_ENOMEM;
    *pl = made;
    if (p->pass == KEEL_WEIGHTS) {
        const int64_t sums = p->weight_adds ? (pl->taps * pl->c + 1) * pl->k : 0;
        p->scratch = (STRETCH * PANEL + sums) * (int64_t)sizeof(float);
    } else {
        const panels s = { pl->taps, pl->c, pl->k, p->pass == KEEL_BACKWARD };
        const keel_status status = panels_derive(p, &s, &pl->packed);
        if (status < 0) {
            keel_free(pl);
            return status;
        }
    }
    p->plan = pl;
    return KEEL_OK;
}

/* Forward and backward ------------------------------------------------------------------------- */

/* Windows over one row of `from`: that of place i begins at place i - pad. */
typedef struct windows {
    const float *from;
    int64_t places, channels, pad, taps, apart;
} windows;

/* The places [*first, *end) of [i, i + n) at which tap t is within the row. */
static void places_of_tap(const windows *w, int64_t t, int64_t i, int64_t n, int64_t *first,
                          int64_t *end)
{
    const int64_t begin = w->pad - t * w->apart;
    *first = i > begin ? i : begin;
    *end = at_most(i + n, begin + w->places);
}

/* From place i on, the next places of `all` to take together, at most `most`; *whole: their windows
 * are neighbours in memory, and within the row. */
static int64_t next_places(const windows *w, int64_t i, int64_t all, int64_t most, bool *whole)
{
    int64_t first = w->pad > 0 ? w->pad : 0;
    int64_t end = at_most(all, w->places - (w->taps - 1) * w->apart + w->pad);
    if (w->apart > 1 || end <= first) first = end = all;
    *whole = i >= first && i < end;
    const int64_t until = i < first ? first : i < end ? end : all;
    return at_most(at_most(until, all) - i, most);
}

/* Sums of n places from i on, tap by tap. */
static void add_taps(const keel_derived *packed, const windows *w, const product *to, int64_t i,
                     int64_t n)
{
    for (int64_t t = 0; t < w->taps; t++) {
        int64_t first, end;
        places_of_tap(w, t, i, n, &first, &end);
        product p = *to;
        p.a = w->from + (first - w->pad + t * w->apart) * w->channels;
        p.out += first * p.out_row;
        p.start = NULL;
        p.resumes = true;
        p.adds = false;
        if (first < end) multiply_panels(packed, &p, end - first, t * w->channels, w->channels);
    }
}

static void convolve(const keel_derived *packed, const windows *w, const product *to,
                     int64_t places)
{
    bool whole;
    for (int64_t i = 0, n; i < places; i += n) {
        n = next_places(w, i, places, GROUP, &whole);
        if (whole) {
            product p = *to;
            p.a = w->from + (i - w->pad) * w->channels;
            p.out += i * p.out_row;
            multiply_panels(packed, &p, n, 0, w->taps * w->channels);
            continue;
        }
        for (int64_t j = i; j < i + n; j++) {
            float *out = to->out + j * to->out_row;
            if (to->start)
                memcpy(out, to->start, (size_t)to->out_row * sizeof *out);
            else if (!to->adds)
                memset(out, 0, (size_t)to->out_row * sizeof *out);
        }
        add_taps(packed, w, to, i, n);
    }
}

static void forward(const keel_call *c)
{
    const plan *pl = c->plan;
    windows w = { c->in[0], pl->x_places, pl->c, pl->pad, pl->taps, pl->apart };
    product to = { .a_row = pl->c,
                   .out = c->out[0],
                   .out_row = pl->k,
                   .start = c->node->n_weight > 1 ? c->weight[1] : NULL };
    for (int64_t r = 0; r < c->rows; r++) {
        convolve(pl->packed, &w, &to, pl->y_places);
        w.from += pl->x_places * pl->c;
        to.out += pl->y_places * pl->k;
    }
}

static void backward(const keel_call *c)
{
    const plan *pl = c->plan;
    const int64_t pad = (pl->taps - 1) * pl->apart - pl->pad;
    windows w = { c->out_grad[0], pl->y_places, pl->k, pad, pl->taps, pl->apart };
    product to = { .a_row = pl->k, .out = c->in_grad[0], .out_row = pl->c, .adds = c->in_adds[0] };
    for (int64_t r = 0; r < c->rows && to.out; r++) {
        convolve(pl->packed, &w, &to, pl->x_places);
        w.from += pl->y_places * pl->k;
        to.out += pl->x_places * pl->c;
    }
}

/* Weight gradients ----------------------------------------------------------------------------- */

/* dw [rows, k] += the products of n places: x of `rows` neighbours, of places c apart, and dy. dy
 * is packed: its rows are often a power of two apart, and would displace each other in the cache.
 */
static void add_product(const plan *pl, const float *x, int64_t rows, const float *dy, int64_t n,
                        float *dw, float *packed)
{
    for (int64_t k = 0; k < pl->k; k += PANEL) {
        const int64_t columns = at_most(pl->k - k, PANEL);
        const product p = { .a = x,
                            .a_row = 1,
                            .a_step = pl->c,
                            .w = packed,
                            .w_row = up(columns, LANES),
                            .inner = n,
                            .out = dw + k,
                            .out_row = pl->k,
                            .adds = true };
        pack(packed, dy + k, n, pl->k, columns);
        multiply(&p, rows, columns);
    }
}

static void add_row(const plan *pl, const float *x, const float *dy, float *dw, float *packed)
{
    const windows w = { x, pl->x_places, pl->c, pl->pad, pl->taps, pl->apart };
    bool whole;
    for (int64_t i = 0, n; i < pl->y_places; i += n) {
        n = next_places(&w, i, pl->y_places, STRETCH, &whole);
        if (whole) {
            add_product(pl, x + (i - pl->pad) * pl->c, pl->taps * pl->c, dy + i * pl->k, n, dw,
                        packed);
            continue;
        }
        for (int64_t t = 0; t < pl->taps; t++) {
            int64_t first, end;
            places_of_tap(&w, t, i, n, &first, &end);
            if (first < end)
                add_product(pl, x + (first - pl->pad + t * pl->apart) * pl->c, pl->c,
                            dy + first * pl->k, end - first, dw + t * pl->c * pl->k, packed);
        }
    }
}

static void weights(const keel_call *c)
{
    const plan *pl = c->plan;
    const int64_t count = pl->taps * pl->c * pl->k;
    float *const to[] = { c->weight_grad[0], c->node->n_weight > 1 ? c->weight_grad[1] : NULL };
    float *const sums = (float *)c->scratch + STRETCH * PANEL;
    float *const dw = to[0] && c->weight_adds ? sums : to[0];
    float *const db = to[1] && c->weight_adds ? sums + count : to[1];
    const float *x = c->in[0], *dy = c->out_grad[0];
    if (dw) memset(dw, 0, (size_t)count * sizeof *dw);
    if (db) memset(db, 0, (size_t)pl->k * sizeof *db);
    for (int64_t r = 0; r < c->rows; r++) {
        if (dw) add_row(pl, x, dy, dw, c->scratch);
        if (db) add_bias(db, dy, pl->y_places, pl->k);
        x += pl->x_places * pl->c;
        dy += pl->y_places * pl->k;
    }
    if (c->weight_adds && dw) VECTOR_MOVE(to[0], dw, count, true);
    if (c->weight_adds && db) VECTOR_MOVE(to[1], db, pl->k, true);
}

const keel_kernel VECTOR_KERNEL(conv2d_1d) = {
    .op = &keel_op_conv2d,
    .name = "1d_" VECTOR_NAME,
    .needs = VECTOR_LEVEL,
    .priority = VECTOR_PRIORITY(OWN),
    .prepare = prepare,
    .run = { [KEEL_FORWARD] = forward, [KEEL_BACKWARD] = backward, [KEEL_WEIGHTS] = weights },
    .release = keel_free,
};
