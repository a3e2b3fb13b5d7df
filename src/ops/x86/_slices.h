/* A convolution of volumes is one of images: the slices that a window reads lie side by side along
 * the channels of one image, and kernels of conv2d make a slice of the output of it. KD is the
 * depth of the window:
 *
 *     forward    y[d] = the convolution of the KD slices of x that d reads, of KD C channels
 *     backward   dx[d] = the backward pass of one to KD K filters; the gradient of its output is
 *                that of the KD slices of y that read d
 *     weights    those of the convolution of forward
 *
 * Slices are copied for that, as many at a time as stay in the cache; those outside of the volume
 * are zeros. So the products are those of one sum over all channels of the window, and kernels of
 * conv2d that need fewer products than a direct sum do so here, too.
 *
 * The including file defines `value`, the type that values are held in. */
#ifndef KEEL_OPS_X86_SLICES_H
#define KEEL_OPS_X86_SLICES_H
#include <stdbool.h>
#include <stdint.h>

/* Which slices lie side by side: slice d of those that are made reads d * stride + step * i - pad
 * for each i of `depth`. */
typedef struct shape {
    int64_t depth, stride, step, pad;
    int64_t from, to;         /* slices of a row: that are read, that are made */
    int64_t places, channels; /* of a slice that is read */
    int64_t made;             /* numbers of a slice that is made */
    int64_t taps, c, k;       /* of the weights, [depth, taps, c, k] */
    bool backward;
} shape;

#include "ops/x86/_images.h"

KEEL_USES_OP(conv3d);

/* [depth, taps, c, k] to [taps, depth, c, k], for backward to [taps, c, depth, k]. */
static void turn_weights(const shape *s, float *images, const float *own)
{
    const int64_t lines = s->backward ? s->c : 1, n = s->backward ? s->k : s->c * s->k;
    for (int64_t i = 0; i < s->depth; i++)
        for (int64_t tap = 0; tap < s->taps; tap++)
            for (int64_t l = 0; l < lines; l++)
                memcpy(images + ((tap * lines + l) * s->depth + i) * n,
                       own + ((i * s->taps + tap) * lines + l) * n, (size_t)n * sizeof(float));
}

static void turn_gradient(const shape *s, float *own, const float *images, bool adds)
{
    const int64_t n = s->c * s->k;
    for (int64_t i = 0; i < s->depth; i++)
        for (int64_t tap = 0; tap < s->taps; tap++)
            VECTOR_MOVE(own + (i * s->taps + tap) * n, images + (tap * s->depth + i) * n, n, adds);
}

static shape shape_of(const keel_node *n, bool backward)
{
    const keel_conv3d_args *a = n->args;
    const keel_spec *from = backward ? &n->out[0] : &n->in[0];
    const keel_spec *to = backward ? &n->in[0] : &n->out[0];
    const int64_t *dim = from->shape.dim, *w = n->weight[0].shape.dim;
    return (shape){ .depth = w[0],
                    .stride = a->strides[0],
                    .step = backward ? -a->dilation[0] : a->dilation[0],
                    .pad = backward ? -a->pad[0] : a->pad[0],
                    .from = dim[0],
                    .to = to->shape.dim[0],
                    .places = dim[1] * dim[2],
                    .channels = dim[3],
                    .made = keel_row_count(to) / to->shape.dim[0],
                    .taps = w[1] * w[2],
                    .c = w[3],
                    .k = w[4],
                    .backward = backward };
}

static keel_spec image_of(const keel_spec *volume, int64_t depth)
{
    const int64_t *dim = volume->shape.dim;
    return (keel_spec){ volume->dtype, KEEL_SHAPE(dim[1], dim[2], depth * dim[3]) };
}

static void fill_inner(inner *x, const keel_node *n, bool backward)
{
    const keel_conv3d_args *a = n->args;
    const int64_t *w = n->weight[0].shape.dim;
    const int64_t in = backward ? 1 : w[0], out = backward ? w[0] : 1;
    inner_fill(x, n);
    x->in = image_of(&n->in[0], in);
    x->out = image_of(&n->out[0], out);
    x->weight[0] = (keel_spec){ n->weight[0].dtype, KEEL_SHAPE(w[1], w[2], in * w[3], out * w[4]) };
    if (n->n_weight > 1) x->weight[1] = n->weight[1];
    x->args = (keel_conv2d_args){ .strides = { a->strides[1], a->strides[2] },
                                  .dilation = { a->dilation[1], a->dilation[2] },
                                  .pad = { a->pad[2], a->pad[3], a->pad[4], a->pad[5] },
                                  .groups = 1 };
}

/* Windows that read one slice each, in order, read it where it lies. */
static bool reads_in_place(const shape *s)
{
    return s->depth == 1 && s->stride == 1 && s->pad == 0 && s->from == s->to;
}

static keel_status slices_prepare(keel_prepare *p, const keel_kernel *const *kernel, int n)
{
    const keel_conv3d_args *a = p->node->args;
    const bool backward = p->pass == KEEL_BACKWARD;
    if (p->pass > KEEL_WEIGHTS || p->rows < 1 || a->groups != 1) return KEEL_EUNSUP;
    if (backward && a->strides[0] != 1) return KEEL_EUNSUP; /* most slices would be zeros */
    plan *pl = keel_calloc(1, sizeof *pl);
    if (!pl) return KEEL_ENOMEM;
    pl->shape = shape_of(p->node, backward);
    fill_inner(&pl->inner, p->node, backward);
    const shape *s = &pl->shape;
    const int64_t all = p->rows * s->to;
    const int64_t bytes = s->places * s->depth * s->channels * (int64_t)sizeof(value);
    pl->rows = reads_in_place(s) ? all : images_of_call(all, bytes);
    lay_out(pl, p->pass, reads_in_place(s) ? 0 : pl->rows * bytes);
    return images_prepare(p, pl, kernel, n);
}

/* ---- running --------------------------------------------------------------------------------- */

/* The slices that slice `made` of the call reads, side by side. */
static void gather_slice(const shape *s, const value *in, int64_t made, value *out)
{
    const int64_t row = made / s->to, d = made % s->to, line = s->depth * s->channels;
    for (int64_t i = 0; i < s->depth; i++, out += s->channels) {
        const int64_t at = d * s->stride + i * s->step - s->pad;
        const bool there = at >= 0 && at < s->from;
        const int64_t slice = there ? row * s->from + at : 0;
        const value *from = in + slice * s->places * s->channels;
        for (int64_t p = 0; p < s->places; p++)
            if (there)
                copy_channels(out + p * line, from + p * s->channels, s->channels);
            else
                memset(out + p * line, 0, (size_t)s->channels * sizeof *out);
    }
}

static const value *gather(const plan *pl, const keel_call *c, const value *in, int64_t made)
{
    const shape *s = &pl->shape;
    value *all = c->scratch;
    if (reads_in_place(s)) return in + made * s->places * s->channels;
    for (int64_t i = 0; i < pl->rows; i++)
        gather_slice(s, in, made + i, all + i * s->places * s->depth * s->channels);
    return all;
}

static void slices_backward(const keel_call *c)
{
    const plan *pl = c->plan;
    keel_call q = call_of(c);
    if (!c->in_grad[0]) return;
    for (int64_t i = 0; i < c->rows * pl->shape.to; i += pl->rows) {
        const void *out_grad = gather(pl, c, c->out_grad[0], i);
        void *in_grad = (value *)c->in_grad[0] + i * pl->shape.made;
        q.out_grad = &out_grad;
        q.in_grad = &in_grad;
        inner_run(&pl->inner, &q, KEEL_BACKWARD);
    }
}

#endif
