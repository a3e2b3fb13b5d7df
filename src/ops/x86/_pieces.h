/* Windows larger than 3x3 by kernels of conv2d for smaller windows that move by one pixel: a window
 * is cut into pieces of 3x3 taps, or of 2x2 if it has 4 taps along its longer side, and what these
 * look at lies side by side along the channels of one image.
 *
 *     stride 1   pieces are 3 or 2 taps apart: 2x2 of them for 5x5 or 4x4 taps
 *     stride 2   pieces are every other tap, from the first or second on: 2x2 for up to 6x6 taps
 *
 * Taps that a piece has beyond the window are zeros. For each output and channel Winograd
 * makes 2.25 products with a piece of 3x3, so 9 for 25 taps, and 1.56 with one of 2x2, so 6.25 for
 * 16 taps. Four pieces of C channels are one sum of 4 C.
 *
 *     forward    image[y, x, piece] = in[stride y + its first tap - pad, ...], y = its convolution
 *     backward   the backward pass of that; the gradient of a pixel is the sum of those of all
 *                pieces that look at it
 *     weights    those of that convolution
 *
 * The including file defines `value`, the type that values are held in. */
#ifndef KEEL_OPS_X86_PIECES_H
#define KEEL_OPS_X86_PIECES_H
#include <stdbool.h>
#include <stdint.h>

enum { PIECES_MOST = 9 };

typedef struct axis {
    int64_t taps, stride, pad, pieces, apart; /* apart: from the first tap of a piece to the next */
    int64_t in, image;                        /* pixels of the op's input, of the image */
} axis;

typedef struct shape {
    axis down, across;
    int64_t each; /* taps of a piece, along one direction */
    int64_t c, k, pieces;
    int64_t to, made;
} shape;

#include "ops/x86/_images.h"

static axis axis_of(int64_t taps, int64_t each, int64_t stride, int64_t pad, int64_t in,
                    int64_t out)
{
    return (axis){ .taps = taps,
                   .stride = stride,
                   .pad = pad,
                   .pieces = stride == 1 ? (taps + each - 1) / each : stride,
                   .apart = stride == 1 ? each : 1,
                   .in = in,
                   .image = out + each - 1 };
}

static shape shape_of(const keel_node *n)
{
    const keel_conv2d_args *a = n->args;
    const int64_t *x = n->in[0].shape.dim, *y = n->out[0].shape.dim, *w = n->weight[0].shape.dim;
    const int64_t each = w[0] <= 4 && w[1] <= 4 && (w[0] == 4 || w[1] == 4) ? 2 : 3;
    shape s = { .down = axis_of(w[0], each, a->strides[0], a->pad[0], x[0], y[0]),
                .across = axis_of(w[1], each, a->strides[1], a->pad[2], x[1], y[1]),
                .each = each,
                .c = w[2],
                .k = w[3],
                .to = 1,
                .made = keel_row_count(&n->out[0]) };
    s.pieces = s.down.pieces * s.across.pieces;
    return s;
}

/* Tap `t` of piece `i`, or -1: the window has no such tap. */
static int64_t tap_of(const axis *a, int64_t i, int64_t t)
{
    const int64_t tap = i * a->apart + t * a->stride;
    return tap < a->taps ? tap : -1;
}

/* For each tap of each piece: its weights in the images' order, and in the op's, or NULL. */
#define EACH_TAP(s, images, own, to, from, ...)                                                    \
    do {                                                                                           \
        const int64_t n_ = (s)->c * (s)->k, each_ = (s)->each;                                     \
        for (int64_t t_ = 0; t_ < each_ * each_; t_++)                                             \
            for (int64_t p_ = 0; p_ < (s)->pieces; p_++) {                                         \
                const int64_t h_ = tap_of(&(s)->down, p_ / (s)->across.pieces, t_ / each_);        \
                const int64_t w_ = tap_of(&(s)->across, p_ % (s)->across.pieces, t_ % each_);      \
                to = (images) + (t_ * (s)->pieces + p_) * n_;                                      \
                from = h_ < 0 || w_ < 0 ? NULL : (own) + (h_ * (s)->across.taps + w_) * n_;        \
                __VA_ARGS__                                                                        \
            }                                                                                      \
    } while (0)

static void turn_weights(const shape *s, float *images, const float *own)
{
    const size_t bytes = (size_t)(s->c * s->k) * sizeof(float);
    float *to;
    const float *from;
    EACH_TAP(s, images, own, to, from, {
        if (from)
            memcpy(to, from, bytes);
        else
            memset(to, 0, bytes);
    });
}

static void turn_gradient(const shape *s, float *own, const float *images, bool adds)
{
    const float *from;
    float *to;
    EACH_TAP(s, images, own, from, to, {
        if (to) VECTOR_MOVE(to, from, s->c * s->k, adds);
    });
}

/* Measured on one core: Winograd takes at most half the time of direct products of as many taps. So
 * 5x5 taps are 1.9 times as fast as oneDNN, at stride 2 too, 4x4 1.4 to 2.1 times, and 7x7 1.3
 * times. */
static bool pays(const shape *s)
{
    return 2 * s->down.taps * s->across.taps > s->each * s->each * s->pieces;
}

static keel_status pieces_prepare(keel_prepare *p, const keel_kernel *const *kernel, int n)
{
    const keel_conv2d_args *a = p->node->args;
    if (p->pass > KEEL_WEIGHTS || p->rows < 1 || a->groups != 1 || a->dilation[0] != 1 ||
        a->dilation[1] != 1)
        return KEEL_EUNSUP;
    const shape s = shape_of(p->node);
    const bool strided = s.down.stride != 1 || s.across.stride != 1;
    if (strided && (s.down.stride != 2 || s.across.stride != 2 || s.down.taps > 2 * s.each ||
                    s.across.taps > 2 * s.each))
        return KEEL_EUNSUP;
    if (s.pieces == 1 || s.pieces > PIECES_MOST || !pays(&s)) return KEEL_EUNSUP;
    plan *pl = keel_calloc(1, sizeof *pl);
    if (!pl) return KEEL_ENOMEM;
    pl->shape = s;
    inner *const x = &pl->inner;
    inner_fill(x, p->node);
    x->in = (keel_spec){ p->node->in[0].dtype,
                         KEEL_SHAPE(s.down.image, s.across.image, s.pieces * s.c) };
    x->out = p->node->out[0];
    x->weight[0] =
        (keel_spec){ p->node->weight[0].dtype, KEEL_SHAPE(s.each, s.each, s.pieces * s.c, s.k) };
    if (p->node->n_weight > 1) x->weight[1] = p->node->weight[1];
    x->args = (keel_conv2d_args){ .strides = { 1, 1 }, .dilation = { 1, 1 }, .groups = 1 };
    const int64_t bytes = keel_row_count(&x->in) * (int64_t)sizeof(value);
    pl->rows = images_of_call(p->rows, bytes);
    lay_out(pl, p->pass, pl->rows * bytes);
    return images_prepare(p, pl, kernel, n);
}

/* ---- running --------------------------------------------------------------------------------- */

/* Where pixel `at` of a piece is in the op's input; outside of it: below 0, or as large as it. */
static int64_t pixel_of(const axis *a, int64_t at, int64_t piece)
{
    return at * a->stride + piece * a->apart - a->pad;
}

static const value *gather(const plan *pl, const keel_call *c, const value *in, int64_t image)
{
    const shape *s = &pl->shape;
    const axis *const down = &s->down, *const across = &s->across;
    value *out = c->scratch;
    in += image * down->in * across->in * s->c;
    for (int64_t r = 0; r < pl->rows; r++, in += down->in * across->in * s->c)
        for (int64_t y = 0; y < down->image; y++)
            for (int64_t x = 0; x < across->image; x++)
                for (int64_t p = 0; p < s->pieces; p++, out += s->c) {
                    const int64_t h = pixel_of(down, y, p / across->pieces);
                    const int64_t w = pixel_of(across, x, p % across->pieces);
                    if (h >= 0 && h < down->in && w >= 0 && w < across->in)
                        copy_channels(out, in + (h * across->in + w) * s->c, s->c);
                    else
                        memset(out, 0, (size_t)s->c * sizeof *out);
                }
    return c->scratch;
}

/* The pixel of a piece that is pixel `at` of the op's input; -1: there is none. */
static int64_t place_of(const axis *a, int64_t at, int64_t piece)
{
    const int64_t from = at + a->pad - piece * a->apart;
    return from < 0 || from % a->stride || from / a->stride >= a->image ? -1 : from / a->stride;
}

/* The gradient of one pixel: those of the pieces, in order. */
static void add_pieces(const shape *s, const value *image, int64_t h, int64_t w, value *dx,
                       bool adds)
{
    const value *from[PIECES_MOST];
    int n = 0;
    for (int64_t p = 0; p < s->pieces; p++) {
        const int64_t y = place_of(&s->down, h, p / s->across.pieces);
        const int64_t x = place_of(&s->across, w, p % s->across.pieces);
        if (y >= 0 && x >= 0)
            from[n++] = image + ((y * s->across.image + x) * s->pieces + p) * s->c;
    }
    VECTOR_EACH(c, s->c, m, {
        vf sum = adds ? vx_load_some(m, dx + c) : vf_zero();
        for (int i = 0; i < n; i++) sum = vf_add(sum, vx_load_some(m, from[i] + c));
        vx_store_some(m, dx + c, sum);
    });
}

/* What is added to is rounded once if the values are narrow: the kernel adds to it. That needs a
 * stride of 2, with which a pixel is in one piece. */
static void pieces_backward(const keel_call *c)
{
    const bool adds[] = { sizeof(value) < sizeof(float) && c->in_adds[0] };
    const plan *pl = c->plan;
    const shape *s = &pl->shape;
    keel_call q = call_of(c);
    value *dx = c->in_grad[0];
    if (!dx) return;
    q.in_adds = adds;
    for (int64_t i = 0; i < c->rows; i += pl->rows) {
        const void *out_grad = (const value *)c->out_grad[0] + i * s->made;
        const value *image = c->scratch;
        void *in_grad = c->scratch;
        q.out_grad = &out_grad;
        q.in_grad = &in_grad;
        if (adds[0]) gather(pl, c, c->in_grad[0], i);
        inner_run(&pl->inner, &q, KEEL_BACKWARD);
        for (int64_t r = 0; r < pl->rows; r++, image += keel_row_count(&pl->inner.in))
            for (int64_t h = 0; h < s->down.in; h++)
                for (int64_t w = 0; w < s->across.in; w++, dx += s->c)
                    add_pieces(s, image, h, w, dx, c->in_adds[0] && !adds[0]);
    }
}

#endif
