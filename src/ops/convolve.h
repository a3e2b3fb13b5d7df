/* Convolution over places of any number of dims, as references compute it: x [B, places.., C],
 * kernel [taps.., C/G, K], bias [K], y [B, places.., K]; group g of G maps its C/G channels to its
 * K/G outputs. What conv2d, conv3d and conv_transpose share.
 *
 * Direct loops with the outputs innermost: no copy of the image is made, and every sum has one
 * fixed order. The gradient of x gathers from the outputs that read a place.
 *
 * Included where REAL is defined (see ops/real.h) after ops/sums.h, and before it for the types.
 * The passes ask conv_of(), which the op's file gives. */
#ifndef REAL
#include "ops/window.h"
#include "base/plural.h"

typedef struct conv { /* the numbers that every loop needs */
    keel_window w;    /* over three dims */
    int64_t places_in, places_out, taps;
    int64_t groups, c, k, cg, kg; /* channels and filters: all, and those of one group */
    int64_t rows;
    bool transposed; /* the op goes through it backwards, from y to x */
} conv;

static inline conv conv_between(const keel_shape *x, const keel_shape *y, int64_t groups,
                                int64_t rows, keel_window w)
{
    const int64_t c = x->dim[w.dims], k = y->dim[w.dims];
    return (conv){ .w = keel_window_volume(&w),
                   .places_in = keel_window_product(&w, w.in),
                   .places_out = keel_window_product(&w, w.out),
                   .taps = keel_window_product(&w, w.size),
                   .groups = groups,
                   .c = c,
                   .k = k,
                   .cg = c / groups,
                   .kg = k / groups,
                   .rows = rows };
}

/* A multiplication and an addition for each number of `y` and each tap. */
static inline double conv_flops(const keel_node *n, const keel_spec *y)
{
    const keel_shape *kernel = &n->weight[0].shape;
    double taps = 1;
    for (int d = 0; d < kernel->rank - 1; d++) taps *= (double)kernel->dim[d];
    return 2 * (double)keel_row_count(y) * taps;
}

/* Checks the kernel of such an op, [taps.., channels / groups, filters]. */
static inline keel_status conv_kernel(const keel_node *n, int dims, int64_t channels,
                                      int64_t groups)
{
    const keel_shape *kernel = &n->weight[0].shape;
    const char *name = n->op->name;
    char text[96];
    keel_shape_text(text, kernel);
    if (kernel->rank != dims + 2)
        return keel_fail(KEEL_ESHAPE, "%s: kernel is %s; needs (%s, channels, filters)", name, text,
                         dims == 2 ? "height, width" : "depth, height, width");
    const int64_t filters = kernel->dim[dims + 1];
    if (groups < 1 || channels % groups || filters % groups)
        return keel_fail(KEEL_ESHAPE,
                         "%s: %lld groups must divide the %lld channel%s and the %lld filter%s",
                         name, (long long)groups, (long long)channels, keel_s(channels),
                         (long long)filters, keel_s(filters));
    if (kernel->dim[dims] != channels / groups)
        return keel_fail(
            KEEL_ESHAPE,
            "%s: kernel is %s for %lld channel%s a group; the input has %lld channel%s "
            "in %lld group%s",
            name, text, (long long)kernel->dim[dims], keel_s(kernel->dim[dims]),
            (long long)channels, keel_s(channels), (long long)groups, keel_s(groups));
    return KEEL_OK;
}

static inline int64_t at_most(int64_t n, int64_t limit)
{
    return n < limit ? n : limit;
}
/* Place `n` as {depth, height, width}. */
static inline void conv_place(int64_t at[3], const int64_t n[3], int64_t place)
{
    at[2] = place % n[2];
    at[1] = place / n[2] % n[1];
    at[0] = place / n[2] / n[1];
}
#else
/* acc += the window at output o, for filters first .. first + nk of group g */
static void REAL_(convolve_place)(const conv *v, const REAL *x, const REAL *kernel,
                                  const int64_t o[3], int64_t g, int64_t first, int64_t nk,
                                  double *acc)
{
    const keel_window *w = &v->w;
    for (int64_t t0 = 0; t0 < w->size[0]; t0++) {
        const int64_t i0 = keel_window_in(w, 0, o[0], t0);
        for (int64_t t1 = 0; i0 >= 0 && t1 < w->size[1]; t1++) {
            const int64_t i1 = keel_window_in(w, 1, o[1], t1);
            for (int64_t t2 = 0; i1 >= 0 && t2 < w->size[2]; t2++) {
                const int64_t i2 = keel_window_in(w, 2, o[2], t2);
                if (i2 < 0) continue;
                const int64_t tap = (t0 * w->size[1] + t1) * w->size[2] + t2;
                const REAL *place = x + ((i0 * w->in[1] + i1) * w->in[2] + i2) * v->c + g * v->cg;
                const REAL *at = kernel + tap * v->cg * v->k + first;
                for (int64_t c = 0; c < v->cg; c++)
                    REAL_(add_scaled)(acc, place[c], at + c * v->k, nk);
            }
        }
    }
}

/* y = b + x * kernel */
static void REAL_(convolve)(const conv *v, const REAL *x, const REAL *kernel, const REAL *bias,
                            REAL *y, bool adds)
{
    for (int64_t row = 0; row < v->rows; row++, x += v->places_in * v->c)
        for (int64_t place = 0; place < v->places_out; place++, y += v->k) {
            int64_t o[3];
            conv_place(o, v->w.out, place);
            for (int64_t g = 0; g < v->groups; g++)
                for (int64_t k0 = 0; k0 < v->kg; k0 += KEEL_SUMS_BLOCK) {
                    const int64_t first = g * v->kg + k0;
                    const int64_t nk = at_most(v->kg - k0, KEEL_SUMS_BLOCK);
                    double acc[KEEL_SUMS_BLOCK] = { 0 };
                    if (bias) REAL_(add_scaled)(acc, 1, bias + first, nk);
                    REAL_(convolve_place)(v, x, kernel, o, g, first, nk, acc);
                    REAL_(store)(y + first, acc, nk, adds);
                }
        }
}

/* acc += the gradients that the windows over place i give to channels c0 .. c0 + nc of group g */
static void REAL_(gather_place)(const conv *v, const REAL *dy, const REAL *kernel,
                                const int64_t i[3], int64_t g, int64_t c0, int64_t nc, double *acc)
{
    const keel_window *w = &v->w;
    for (int64_t t0 = 0; t0 < w->size[0]; t0++) {
        const int64_t o0 = keel_window_out(w, 0, i[0], t0);
        for (int64_t t1 = 0; o0 >= 0 && t1 < w->size[1]; t1++) {
            const int64_t o1 = keel_window_out(w, 1, i[1], t1);
            for (int64_t t2 = 0; o1 >= 0 && t2 < w->size[2]; t2++) {
                const int64_t o2 = keel_window_out(w, 2, i[2], t2);
                if (o2 < 0) continue;
                const int64_t tap = (t0 * w->size[1] + t1) * w->size[2] + t2;
                const REAL *place =
                    dy + ((o0 * w->out[1] + o1) * w->out[2] + o2) * v->k + g * v->kg;
                const REAL *at = kernel + (tap * v->cg + c0) * v->k + g * v->kg;
                for (int64_t c = 0; c < nc; c++) acc[c] += REAL_(dot)(place, at + c * v->k, v->kg);
            }
        }
    }
}

/* Computes dx or, for a transposed convolution, the output with its bias. */
static void REAL_(convolve_back)(const conv *v, const REAL *dy, const REAL *kernel,
                                 const REAL *bias, REAL *dx, bool adds)
{
    for (int64_t row = 0; row < v->rows; row++, dy += v->places_out * v->k)
        for (int64_t place = 0; place < v->places_in; place++, dx += v->c) {
            int64_t i[3];
            conv_place(i, v->w.in, place);
            for (int64_t g = 0; g < v->groups; g++)
                for (int64_t c0 = 0; c0 < v->cg; c0 += KEEL_SUMS_BLOCK) {
                    const int64_t nc = at_most(v->cg - c0, KEEL_SUMS_BLOCK);
                    double acc[KEEL_SUMS_BLOCK] = { 0 };
                    if (bias) REAL_(add_scaled)(acc, 1, bias + g * v->cg + c0, nc);
                    REAL_(gather_place)(v, dy, kernel, i, g, c0, nc, acc);
                    REAL_(store)(dx + g * v->cg + c0, acc, nc, adds);
                }
        }
}

/* The sums of one tap's [c0 + CHANNELS, k0 + BLOCK] piece, over all places of all rows. */
#define CHANNELS 8

static void REAL_(convolve_tap)(const conv *v, const REAL *x, const REAL *dy, int64_t tap,
                                int64_t c_first, int64_t nc, int64_t k_first, int64_t nk,
                                double acc[CHANNELS][KEEL_SUMS_BLOCK])
{
    const keel_window *w = &v->w;
    int64_t t[3];
    conv_place(t, w->size, tap);
    for (int64_t row = 0; row < v->rows; row++, x += v->places_in * v->c)
        for (int64_t o0 = 0; o0 < w->out[0]; o0++)
            for (int64_t o1 = 0; o1 < w->out[1]; o1++, dy += w->out[2] * v->k) {
                const int64_t i0 = keel_window_in(w, 0, o0, t[0]);
                const int64_t i1 = keel_window_in(w, 1, o1, t[1]);
                for (int64_t o2 = 0; i0 >= 0 && i1 >= 0 && o2 < w->out[2]; o2++) {
                    const int64_t i2 = keel_window_in(w, 2, o2, t[2]);
                    if (i2 < 0) continue;
                    const REAL *place = x + ((i0 * w->in[1] + i1) * w->in[2] + i2) * v->c + c_first;
                    for (int64_t c = 0; c < nc; c++)
                        REAL_(add_scaled)(acc[c], place[c], dy + o2 * v->k + k_first, nk);
                }
            }
}

static void REAL_(convolve_weights)(const conv *v, const REAL *x, const REAL *dy, REAL *dw,
                                    bool adds)
{
    for (int64_t tap = 0; tap < v->taps; tap++)
        for (int64_t g = 0; g < v->groups; g++)
            for (int64_t c0 = 0; c0 < v->cg; c0 += CHANNELS)
                for (int64_t k0 = 0; k0 < v->kg; k0 += KEEL_SUMS_BLOCK) {
                    const int64_t nc = at_most(v->cg - c0, CHANNELS);
                    const int64_t nk = at_most(v->kg - k0, KEEL_SUMS_BLOCK);
                    const int64_t k_first = g * v->kg + k0;
                    double acc[CHANNELS][KEEL_SUMS_BLOCK] = { { 0 } };
                    REAL_(convolve_tap)
                    (v, x, dy, tap, g * v->cg + c0, nc, k_first, nk, acc);
                    for (int64_t c = 0; c < nc; c++) REAL_(store)
                    (dw + (tap * v->cg + c0 + c) * v->k + k_first, acc[c], nk, adds);
                }
}

static void REAL_(forward)(const keel_call *c)
{
    const conv v = conv_of(c);
    const REAL *bias = c->node->n_weight > 1 ? c->weight[1] : NULL;
    (v.transposed ? REAL_(convolve_back) : REAL_(convolve))(&v, c->in[0], c->weight[0], bias,
                                                            c->out[0], false);
}

static void REAL_(backward)(const keel_call *c)
{
    const conv v = conv_of(c);
    if (!c->in_grad[0]) return;
    (v.transposed ? REAL_(convolve) : REAL_(convolve_back))(&v, c->out_grad[0], c->weight[0], NULL,
                                                            c->in_grad[0], c->in_adds[0]);
}

static void REAL_(weights)(const keel_call *c)
{
    const conv v = conv_of(c);
    const REAL *in = c->in[0], *grad = c->out_grad[0];
    if (c->weight_grad[0]) REAL_(convolve_weights)
    (&v, v.transposed ? grad : in, v.transposed ? in : grad, c->weight_grad[0], c->weight_adds);
    if (c->node->n_weight > 1 && c->weight_grad[1]) REAL_(sum_places)
    (c->weight_grad[1], grad, v.rows * (v.transposed ? v.places_in : v.places_out),
     v.transposed ? v.c : v.k, c->weight_adds);
}
#endif
