/* conv2d on bfloat16 values with windows of any size, stride and dilation, all three passes,
 * without groups: the products of _pairs_avx512_bf16.h at the places of an image, one image after
 * the other.
 *
 *     forward   y  = sum over taps of the window: x at the tap, times W[tap] [C, K]
 *     backward  dx = sum over taps: dy where that tap saw the pixel, times W[tap] turned [K, C]
 *     weights   dW[tap] [C, K] = sum over places: x at the tap, turned, times dy
 *
 * Where the dilation is 1 the taps of a window's line are neighbours in memory, and so one run of
 * pairs. With a stride the pixels of dx fall into classes, by their place between two windows, and
 * the taps that saw a pixel are those of its class. Images with a border of zeros, where windows
 * reach over, are copied to scratch. */
#include "base/memory.h"
#include "device/cpu/cpu.h"
#include "ops/x86/_pairs_avx512_bf16.h"
#include "ops/args.h"

KEEL_USES_OP(conv2d);

/* For a weight gradient: as many pairs of places, channels of x and of dy as the caches hold. */
enum {
    AHEAD = 24,
    PAIRS = 128,
    X_MOST = 512,
    X_ROW = X_MOST + LANES,
    DY_MOST = 512,
    IMAGES_BYTES = 256 << 10
};

typedef struct class
{
    int64_t n_place;
    keel_pairs_place *place;
    int n_tap;
    keel_pairs_tap *tap;
} class;

typedef struct plan {
    const keel_derived *packed;
    int64_t c, k;           /* channels in and out */
    int64_t inner, columns; /* of a tap's part of a panel, and of all panels */
    int n_tap;              /* parts of a panel */
    int64_t h, w, line;     /* the image that is read, [h, w, line / w], has a border in scratch: */
    int64_t before_h, before_w, wide_h, wide_line;
    bool pads;
    int64_t from, to;  /* values of an image read and written */
    int64_t images;    /* that are in work at the same time */
    int64_t images_at; /* in scratch, with their borders */
    int64_t apart_at;  /* in scratch: a weight gradient that will be added */
    int n_class;
    class *class;
} plan;

static void release(void *p)
{
    plan *pl = p;
    for (int i = 0; pl && pl->class && i < pl->n_class; i++) {
        keel_free(pl->class[i].place);
        keel_free(pl->class[i].tap);
    }
    if (pl) keel_free(pl->class);
    keel_free(pl);
}

/* Packed weights: panels of [tap][pairs][columns] ---------------------------------------------- */

typedef struct packed {
    int64_t n_tap, inner, columns;
    bool turned;
} packed;

static void refresh(const keel_derived *d, const void *weight)
{
    const packed *s = d->plan;
    const float *w = weight;
    uint32_t *to = d->data;
    for (int64_t k = 0; k < s->columns; k += PANEL) {
        const int64_t columns = s->columns - k < PANEL ? s->columns - k : PANEL;
        for (int64_t t = 0; t < s->n_tap; t++) {
            const float *tap = w + t * s->inner * s->columns;
            if (s->turned)
                keel_pairs_pack_turned(to, tap, s->inner, s->inner, k, columns);
            else
                keel_pairs_pack_weights(to, tap, s->inner, s->columns, k, columns);
            to += (s->inner + 1) / 2 * up(columns, LANES);
        }
    }
}

static keel_status derive(keel_prepare *p, plan *pl)
{
    packed *s = keel_calloc(1, sizeof *s);
    if (!s) return KEEL_ENOMEM;
    *s = (packed){ pl->n_tap, pl->inner, pl->columns, p->pass == KEEL_BACKWARD };
    const int64_t count = s->n_tap * ((s->inner + 1) / 2) * up(s->columns, LANES);
    keel_derived want = { .bytes = (size_t)count * sizeof(uint32_t),
                          .key = 0x57494e444f570000u + (uint64_t)(s->turned << 15 | s->n_tap),
                          .refresh = refresh,
                          .release = keel_free,
                          .plan = s };
    return p->derive(p->context, &want, &pl->packed);
}

/* Prepare -------------------------------------------------------------------------------------- */

typedef struct windows { /* by axis */
    int64_t x[2], y[2], size[2], stride[2], dilation[2], before[2];
} windows;

/* A sequence [T, 1, C] is taken as [1, T, C], which lies in memory alike: then the taps of a window
 * are neighbours on a line. */
static windows windows_of(const keel_node *n)
{
    const keel_conv2d_args *a = n->args;
    const int64_t *x = n->in[0].shape.dim, *y = n->out[0].shape.dim, *size = n->weight[0].shape.dim;
    const bool turns = x[1] == 1 && y[1] == 1 && size[1] == 1 && a->pad[2] == 0;
    windows v;
    for (int i = 0; i < 2; i++) {
        const int from = turns ? 1 - i : i;
        v.x[i] = x[from], v.y[i] = y[from], v.size[i] = size[from];
        v.stride[i] = a->strides[from], v.dilation[i] = a->dilation[from];
        v.before[i] = a->pad[2 * from];
    }
    return v;
}

static keel_status new_class(class *g, int64_t places, int64_t taps)
{
    g->place = keel_calloc((size_t)places + 1, sizeof *g->place);
    g->tap = keel_calloc((size_t)taps + 1, sizeof *g->tap);
    return g->place && g->tap ? KEEL_OK : KEEL_ENOMEM;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* What forward and weights read: x, at the places of y. */
static keel_status plan_windows(plan *pl, const keel_node *n)
{
    const windows v = windows_of(n);
    const int64_t *x = v.x, *y = v.y, *win = v.size;
    const bool runs = v.dilation[1] == 1;
    const int64_t reach_h = (y[0] - 1) * v.stride[0] + (win[0] - 1) * v.dilation[0] + 1;
    const int64_t reach_w = (y[1] - 1) * v.stride[1] + (win[1] - 1) * v.dilation[1] + 1;
    const int64_t wide_w = larger(reach_w, v.before[1] + x[1]);
    class *g;
    pl->n_tap = (int)(runs ? win[0] : win[0] * win[1]);
    pl->inner = runs ? win[1] * pl->c : pl->c;
    pl->columns = pl->k;
    pl->h = x[0], pl->w = x[1], pl->line = x[1] * pl->c;
    pl->before_h = v.before[0], pl->before_w = v.before[1];
    pl->wide_h = larger(reach_h, v.before[0] + x[0]), pl->wide_line = wide_w * pl->c;
    pl->from = x[0] * x[1] * pl->c, pl->to = y[0] * y[1] * pl->k;
    if (!(pl->class = keel_calloc(1, sizeof *pl->class))) return KEEL_ENOMEM;
    pl->n_class = 1;
    g = pl->class;
    KEEL_TRY(new_class(g, y[0] * y[1], pl->n_tap));
    for (int64_t i = 0; i < y[0]; i++)
        for (int64_t j = 0; j < y[1]; j++)
            g->place[g->n_place++] = (keel_pairs_place){
                .a = 2 * (i * v.stride[0] * pl->wide_line + j * v.stride[1] * pl->c),
                .out = (i * y[1] + j) * pl->k,
            };
    for (; g->n_tap < pl->n_tap; g->n_tap++) {
        const int64_t i = runs ? g->n_tap : g->n_tap / win[1], j = runs ? 0 : g->n_tap % win[1];
        g->tap[g->n_tap] = (keel_pairs_tap){
            .a = 2 * (i * v.dilation[0] * pl->wide_line + j * v.dilation[1] * pl->c),
            .w = g->n_tap * ((pl->inner + 1) / 2),
        };
    }
    return KEEL_OK;
}

/* Along one axis: whether tap `at` of the window read pixel r + stride q, at place q + *off. */
static bool sees(const windows *v, int axis, int64_t r, int64_t at, int64_t *off)
{
    const int64_t distance = r + v->before[axis] - at * v->dilation[axis];
    *off = distance / v->stride[axis];
    return distance % v->stride[axis] == 0;
}

/* How far those places extend before the first and after the last of y. */
static void border(const windows *v, int axis, int64_t window, int64_t size, int64_t y,
                   int64_t *before, int64_t *wide)
{
    int64_t least = 0, most = y - 1, off;
    for (int64_t r = 0; r < v->stride[axis] && r < size; r++)
        for (int64_t at = 0; at < window; at++)
            if (sees(v, axis, r, at, &off)) {
                least = -larger(-least, -off);
                most = larger(most, (size - 1 - r) / v->stride[axis] + off);
            }
    *before = -least;
    *wide = most + 1 - least;
}

/* What backward reads: dy, for the pixels of x by classes. */
static keel_status plan_turned(plan *pl, const keel_node *n)
{
    const windows v = windows_of(n);
    const int64_t *x = v.x, *y = v.y, *win = v.size, *s = v.stride;
    int64_t wide_w;
    pl->n_tap = (int)(win[0] * win[1]);
    pl->inner = pl->k;
    pl->columns = pl->c;
    pl->h = y[0], pl->w = y[1], pl->line = y[1] * pl->k;
    border(&v, 0, win[0], x[0], y[0], &pl->before_h, &pl->wide_h);
    border(&v, 1, win[1], x[1], y[1], &pl->before_w, &wide_w);
    pl->wide_line = wide_w * pl->k;
    pl->from = y[0] * y[1] * pl->k, pl->to = x[0] * x[1] * pl->c;
    if (!(pl->class = keel_calloc((size_t)(s[0] * s[1]), sizeof *pl->class))) return KEEL_ENOMEM;
    for (int64_t rh = 0; rh < s[0]; rh++)
        for (int64_t rw = 0; rw < s[1]; rw++) {
            class *g = &pl->class[pl->n_class++];
            int64_t off_h, off_w;
            KEEL_TRY(new_class(g, x[0] * x[1], pl->n_tap));
            for (int64_t i = rh; i < x[0]; i += s[0])
                for (int64_t j = rw; j < x[1]; j += s[1])
                    g->place[g->n_place++] = (keel_pairs_place){
                        .a = 2 * ((i / s[0] + pl->before_h) * pl->wide_line +
                                  (j / s[1] + pl->before_w) * pl->k),
                        .out = (i * x[1] + j) * pl->c,
                    };
            for (int64_t i = 0; i < win[0]; i++)
                for (int64_t j = 0; j < win[1]; j++)
                    if (sees(&v, 0, rh, i, &off_h) && sees(&v, 1, rw, j, &off_w))
                        g->tap[g->n_tap++] = (keel_pairs_tap){
                            .a = 2 * (off_h * pl->wide_line + off_w * pl->k),
                            .w = (i * win[1] + j) * ((pl->inner + 1) / 2),
                        };
        }
    return KEEL_OK;
}

static keel_status make_plan(plan *pl, keel_prepare *p)
{
    const keel_shape *w = &p->node->weight[0].shape;
    const bool weights = p->pass == KEEL_WEIGHTS;
    pl->c = w->dim[2];
    pl->k = w->dim[3];
    KEEL_TRY(p->pass == KEEL_BACKWARD ? plan_turned(pl, p->node) : plan_windows(pl, p->node));
    pl->pads = pl->wide_h > pl->h || pl->wide_line > pl->line;
    const int64_t image = pl->wide_h * pl->wide_line * 2;
    pl->images = larger(IMAGES_BYTES / image, weights ? 4 * PAIRS * pl->k / pl->to : 1);
    if (pl->images < 1) pl->images = 1;
    if (pl->images > p->rows || (weights && !pl->pads)) pl->images = p->rows;
    pl->images_at = weights ? PAIRS * (X_ROW + DY_MOST) * 4 : 0;
    p->scratch = pl->images_at + (pl->pads ? up(pl->images * image, 64) : 0);
    pl->apart_at = p->scratch;
    if (!weights) return derive(p, pl);
    if (p->weight_adds) p->scratch += keel_shape_count(w) * (int64_t)sizeof(float);
    return KEEL_OK;
}

static keel_status prepare(keel_prepare *p)
{
    const keel_node *n = p->node;
    const keel_conv2d_args *a = n->args;
    if (n->real != KEEL_FLOAT32 || n->held != KEEL_BFLOAT16 || n->in[0].dtype != KEEL_BFLOAT16 ||
        p->rows < 1 || p->pass > KEEL_WEIGHTS || a->groups != 1)
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

/* Run ------------------------------------------------------------------------------------------ */

/* n images in a border of zeros; or as they are, if no border is needed. */
static const keel_bf16 *bordered(const plan *pl, const keel_bf16 *from, int64_t n, void *scratch)
{
    keel_bf16 *const to = (keel_bf16 *)((char *)scratch + pl->images_at);
    const int64_t channels = pl->line / pl->w, left = pl->before_w * channels;
    const int64_t right = pl->wide_line - pl->line - left;
    if (!pl->pads) return from;
    for (int64_t i = 0; i < n; i++) {
        keel_bf16 *at = to + i * pl->wide_h * pl->wide_line;
        for (int64_t y = -pl->before_h; y < pl->wide_h - pl->before_h; y++, at += pl->wide_line) {
            if (y < 0 || y >= pl->h) {
                memset(at, 0, (size_t)pl->wide_line * sizeof *at);
                continue;
            }
            memset(at, 0, (size_t)left * sizeof *at);
            memcpy(at + left, from + i * pl->from + y * pl->line, (size_t)pl->line * sizeof *at);
            memset(at + left + pl->line, 0, (size_t)right * sizeof *at);
        }
    }
    return to;
}

/* Some images at a time, and for them one panel after another, which stays in the cache. */
static void convolve(const keel_call *c, const keel_bf16 *from, const float *start, keel_bf16 *to,
                     bool adds)
{
    const plan *pl = c->plan;
    for (int64_t i = 0, n; i < c->rows; i += n, from += n * pl->from, to += n * pl->to) {
        n = c->rows - i < pl->images ? c->rows - i : pl->images;
        const keel_bf16 *images = bordered(pl, from, n, c->scratch);
        const uint32_t *w = pl->packed->data;
        for (int64_t k = 0; k < pl->columns; k += PANEL) {
            const int64_t width = pl->columns - k < PANEL ? pl->columns - k : PANEL;
            for (int64_t image = 0; image < n; image++)
                for (int g = 0; g < pl->n_class; g++) {
                    /* many channels from memory, whole places of them: or there is no wait */
                    const bool waits = k == 0 && !pl->pads && pl->class[g].n_tap == 1 &&
                                       pl->inner >= pl->columns &&
                                       pl->class[g].n_place * pl->inner == pl->from;
                    const keel_pairs p = { .a = (const char *)(images +
                                                               image * pl->wide_h * pl->wide_line),
                                           .place = pl->class[g].place,
                                           .a_step = 4,
                                           .pairs = (pl->inner + 1) / 2,
                                           .n_tap = pl->class[g].n_tap,
                                           .tap = pl->class[g].tap,
                                           .half = pl->inner % 2,
                                           .w = w,
                                           .start = start ? start + k : NULL,
                                           .out = to + image * pl->to + k,
                                           .adds = adds,
                                           .ahead = waits ? AHEAD * pl->inner * 2 : 0 };
                    keel_pairs_multiply(&p, pl->class[g].n_place, width);
                }
            w += pl->n_tap * ((pl->inner + 1) / 2) * PANEL;
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

/* Weight gradients ----------------------------------------------------------------------------- */

/* Where windows of x begin: at most 2 PAIRS of n places, from `at` on. */
static void windows_at(const plan *pl, const keel_bf16 *images, int64_t at, int64_t n,
                       const keel_bf16 *row[2 * PAIRS + 1])
{
    const int64_t places = pl->to / pl->k;
    int64_t i = 0;
    for (; at + i < n; i++)
        row[i] = images + (at + i) / places * pl->wide_h * pl->wide_line +
                 pl->class->place[(at + i) % places].a / 2;
    row[i] = NULL;
}

/* dW of all taps and of outputs [k, k + n_k), from some pairs of places; dy is packed already,
 * [panel][pairs][width]. `odd`: the last has one place. */
static void add_pairs(const plan *pl, const keel_bf16 *const *row, int64_t pairs, bool odd,
                      const uint32_t *dy, int64_t k, int64_t n_k, float *dw, bool adds,
                      keel_pairs_ahead *prefetch, uint32_t *x_pairs)
{
    const int64_t all = pl->n_tap * pl->inner;
    /* a block is some taps, or a part of one */
    const int64_t taps = larger(X_MOST / pl->inner, 1);
    const int64_t most = pl->inner < X_MOST ? pl->inner : X_MOST;
    for (int64_t t = 0, c = 0, n; t * pl->inner + c < all;) {
        const int64_t first = t * pl->inner + c;
        n = 0;
        if (most == pl->inner)
            for (; t < pl->n_tap && n < taps * most; t++, n += most)
                for (int64_t i = 0; i < pairs; i++) {
                    const int64_t a = pl->class->tap[t].a / 2;
                    const bool one = odd && i == pairs - 1;
                    keel_pairs_pack_values(x_pairs + i * X_ROW + n, row[2 * i] + a,
                                           one ? NULL : row[2 * i + 1] + a, most);
                }
        else {
            const int64_t a = pl->class->tap[t].a / 2 + c;
            n = pl->inner - c < most ? pl->inner - c : most;
            for (int64_t i = 0; i < pairs; i++)
                keel_pairs_pack_values(x_pairs + i * X_ROW, row[2 * i] + a,
                                       odd && i == pairs - 1 ? NULL : row[2 * i + 1] + a, n);
            c += n;
            if (c == pl->inner) t++, c = 0;
        }
        for (int64_t j = 0; j < n_k; j += PANEL) {
            const int64_t width = n_k - j < PANEL ? n_k - j : PANEL;
            const keel_pairs p = { .a = (const char *)x_pairs,
                                   .a_row = sizeof *x_pairs,
                                   .a_step = X_ROW * sizeof *x_pairs,
                                   .pairs = pairs,
                                   .n_tap = 1,
                                   .w = dy + j * pairs,
                                   .out = dw + first * pl->k + k + j,
                                   .out_row = pl->k,
                                   .wide = true,
                                   .adds = adds,
                                   .after = true,
                                   .prefetch = prefetch };
            keel_pairs_multiply(&p, n, width);
        }
    }
}

/* What the next stretch of places packs. Of x only where no place is left out or read twice: other
 * images have been copied, or are few. */
static keel_pairs_ahead soon_of(const plan *pl, const keel_bf16 *images, const keel_bf16 *dy,
                                int64_t at, int64_t places)
{
    const int64_t n = places - at < 2 * PAIRS ? places - at : 2 * PAIRS;
    const bool whole = pl->inner == pl->c && pl->from == pl->to / pl->k * pl->c;
    const keel_bf16 *const x = images + (whole ? at * pl->c : 0);
    dy += at * pl->k;
    return (keel_pairs_ahead){ .at = { (const char *)dy, (const char *)x },
                               .end = { (const char *)(dy + n * pl->k),
                                        (const char *)(whole ? x + n * pl->c : x) } };
}

/* dW of outputs [k, k + n_k) from n images, in stretches of places that differ by a pair. */
static void weights_of(const plan *pl, const keel_bf16 *images, const keel_bf16 *dy, int64_t n,
                       int64_t k, int64_t n_k, float *dw, bool adds, uint32_t *scratch)
{
    uint32_t *const dy_pairs = scratch + PAIRS * X_ROW;
    const keel_bf16 *row[2 * PAIRS + 1];
    const int64_t places = n * (pl->to / pl->k);
    const int64_t stretches = (places + 2 * PAIRS - 1) / (2 * PAIRS);
    const int64_t step = up((places + stretches - 1) / stretches, 2);
    for (int64_t at = 0; at < places; at += step, adds = true) {
        const int64_t some = places - at < step ? places - at : step, pairs = (some + 1) / 2;
        keel_pairs_ahead prefetch = soon_of(pl, images, dy, at + some, places);
        windows_at(pl, images, at, at + some, row);
        for (int64_t i = 0; i < pairs; i++) { /* in the order of memory */
            const keel_bf16 *low = dy + (at + 2 * i) * pl->k + k;
            const keel_bf16 *high = 2 * i + 1 < some ? low + pl->k : NULL;
            for (int64_t j = 0; j < n_k; j += PANEL) {
                const int64_t width = n_k - j < PANEL ? n_k - j : PANEL;
                keel_pairs_pack_values(dy_pairs + j * pairs + i * up(width, LANES), low + j,
                                       high ? high + j : NULL, width);
            }
        }
        add_pairs(pl, row, pairs, some % 2, dy_pairs, k, n_k, dw, adds, &prefetch, scratch);
    }
}

static void weights(const keel_call *c)
{
    const plan *pl = c->plan;
    float *const apart = (float *)((char *)c->scratch + pl->apart_at);
    float *const dw = c->weight_grad[0], *const db =
                                             c->node->n_weight > 1 ? c->weight_grad[1] : NULL;
    const keel_bf16 *x = c->in[0], *dy = c->out_grad[0];
    for (int64_t i = 0, n; dw && i < c->rows; i += n) {
        n = c->rows - i < pl->images ? c->rows - i : pl->images;
        const keel_bf16 *images = bordered(pl, x + i * pl->from, n, c->scratch);
        for (int64_t k = 0; k < pl->k; k += DY_MOST)
            weights_of(pl, images, dy + i * pl->to, n, k, pl->k - k < DY_MOST ? pl->k - k : DY_MOST,
                       c->weight_adds ? apart : dw, i > 0, c->scratch);
    }
    if (dw && c->weight_adds) keel_pairs_add(dw, apart, pl->n_tap * pl->inner * pl->k);
    const keel_span all = { .out_grad = dy, .rows = c->rows * (pl->to / pl->k) };
    if (db) keel_pairs_sum(&all, 1, pl->k, 0, pl->k, db, c->weight_adds);
}

const keel_kernel keel_kernel_conv2d_avx512_bf16 = {
    .op = &keel_op_conv2d,
    .name = "avx512_bf16",
    .needs = KEEL_CPU_AVX512_BF16,
    .priority = KEEL_PRIORITY_PAIRS,
    .prepare = prepare,
    .narrow = { [KEEL_FORWARD] = forward, [KEEL_BACKWARD] = backward, [KEEL_WEIGHTS] = weights },
    .release = release,
};
