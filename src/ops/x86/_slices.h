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
#include "base/memory.h"
#include "ops/args.h"
#include "ops/x86/_vector.h"

KEEL_USES_OP(conv2d);
KEEL_USES_OP(conv3d);

enum { GATHERED_BYTES = 1 << 21, LINE = 64 };

/* Which slices lie side by side: slice d of those that are made reads d * stride + step * i - pad
 * for each i. */
typedef struct window {
    int64_t depth, stride, step, pad;
    int64_t from, to; /* slices of a row: that are read, that are made */
} window;

typedef struct plan {
    keel_node node; /* of the convolution of images */
    keel_spec in, out, weight[2];
    keel_conv2d_args args;
    const keel_kernel *kernel;
    void *plan; /* of the kernel */
    window window;
    int64_t places, channels; /* of a slice that is read */
    int64_t made;             /* numbers of a slice that is made */
    int64_t rows;             /* slices that a call makes */
    int64_t grad, bias, rest; /* where they lie in scratch, in bytes: gradients, the kernel's */
} plan;

/* ---- the convolution of images --------------------------------------------------------------- */

static keel_spec image_of(const keel_spec *volume, int64_t depth)
{
    const int64_t *dim = volume->shape.dim;
    return (keel_spec){ volume->dtype, KEEL_SHAPE(dim[1], dim[2], depth * dim[3]) };
}

static void fill_node(plan *pl, const keel_node *n, bool backward)
{
    const keel_conv3d_args *a = n->args;
    const int64_t *w = n->weight[0].shape.dim, depth = w[0];
    pl->in = image_of(&n->in[0], backward ? 1 : depth);
    pl->out = image_of(&n->out[0], backward ? depth : 1);
    pl->weight[0] =
        (keel_spec){ n->weight[0].dtype, KEEL_SHAPE(w[1], w[2], backward ? w[3] : depth * w[3],
                                                    backward ? depth * w[4] : w[4]) };
    if (n->n_weight > 1) pl->weight[1] = n->weight[1];
    pl->args = (keel_conv2d_args){ .strides = { a->strides[1], a->strides[2] },
                                   .dilation = { a->dilation[1], a->dilation[2] },
                                   .pad = { a->pad[2], a->pad[3], a->pad[4], a->pad[5] },
                                   .groups = 1 };
    pl->node = *n;
    pl->node.op = &keel_op_conv2d;
    pl->node.args = &pl->args;
    pl->node.in = &pl->in;
    pl->node.out = &pl->out;
    pl->node.weight = pl->weight;
}

static void fill_window(plan *pl, const keel_node *n, bool backward)
{
    const keel_conv3d_args *a = n->args;
    const keel_spec *from = backward ? &n->out[0] : &n->in[0];
    const keel_spec *to = backward ? &n->in[0] : &n->out[0];
    const int64_t *dim = from->shape.dim;
    pl->window = (window){ .depth = n->weight[0].shape.dim[0],
                           .stride = a->strides[0],
                           .step = backward ? -a->dilation[0] : a->dilation[0],
                           .pad = backward ? -a->pad[0] : a->pad[0],
                           .from = dim[0],
                           .to = to->shape.dim[0] };
    pl->places = dim[1] * dim[2];
    pl->channels = dim[3];
    pl->made = keel_row_count(to) / to->shape.dim[0];
}

/* ---- weights in the order of the convolution of images --------------------------------------- */

/* Copies of weights: what a kernel wants, which it makes of the weights in its own order. Those lie
 * behind what it makes. */
typedef struct turned {
    keel_derived want;
    int64_t depth, taps, c, k;
    bool backward;
} turned;

/* [KD, taps, C, K] to [taps, KD, C, K], for backward to [taps, C, KD, K]. */
static void turn_weights(const turned *t, float *images, const float *volumes)
{
    const int64_t lines = t->backward ? t->c : 1, n = t->backward ? t->k : t->c * t->k;
    for (int64_t i = 0; i < t->depth; i++)
        for (int64_t tap = 0; tap < t->taps; tap++)
            for (int64_t l = 0; l < lines; l++)
                memcpy(images + ((tap * lines + l) * t->depth + i) * n,
                       volumes + ((i * t->taps + tap) * lines + l) * n, (size_t)n * sizeof(float));
}

static void refresh(const keel_derived *d, const void *weight)
{
    const turned *t = d->plan;
    keel_derived images = t->want;
    float *behind = (float *)((char *)d->data + (t->want.bytes + LINE - 1) / LINE * LINE);
    images.data = d->data;
    turn_weights(t, behind, weight);
    images.refresh(&images, behind);
}

static void release_turned(void *plan_)
{
    turned *t = plan_;
    if (t->want.release) t->want.release(t->want.plan);
    keel_free(t);
}

static keel_status derive(void *context, keel_derived *want, const keel_derived **got)
{
    enum { KEY = 0x736c69636573 };
    const keel_prepare *p = context;
    const int64_t *w = p->node->weight[0].shape.dim;
    const size_t numbers = (size_t)keel_shape_count(&p->node->weight[0].shape);
    turned *t = keel_calloc(1, sizeof *t);
    if (!t) {
        if (want->release) want->release(want->plan);
        return KEEL_ENOMEM;
    }
    *t = (turned){ .want = *want,
                   .depth = w[0],
                   .taps = w[1] * w[2],
                   .c = w[3],
                   .k = w[4],
                   .backward = p->pass == KEEL_BACKWARD };
    keel_derived all = { .bytes = (want->bytes + LINE - 1) / LINE * LINE + numbers * sizeof(float),
                         .weight = want->weight,
                         .key = want->key ^ KEY,
                         .refresh = refresh,
                         .release = release_turned,
                         .plan = t };
    return p->derive(p->context, &all, got);
}

/* ---- prepare --------------------------------------------------------------------------------- */

static void slices_release(void *plan_)
{
    plan *pl = plan_;
    if (pl && pl->kernel && pl->kernel->release) pl->kernel->release(pl->plan);
    keel_free(pl);
}

/* Slices that one call makes, so that all calls are alike: about `most`. */
static int64_t slices_of_call(int64_t all, int64_t most)
{
    for (int64_t n = most; n > most / 2; n--)
        if (all % n == 0) return n;
    for (int64_t n = most; n < 4 * most && n <= all; n++)
        if (all % n == 0) return n;
    while (all % most) most--;
    return most;
}

/* Windows that read one slice each, in order, read it where it lies. */
static bool reads_in_place(const window *w)
{
    return w->depth == 1 && w->stride == 1 && w->pad == 0 && w->from == w->to;
}

/* Where things lie in scratch: the slices side by side, gradients of weights, the kernel's. */
static void lay_out(plan *pl, const keel_node *n, keel_pass pass, int64_t rows)
{
    const int64_t side_by_side = pl->places * pl->window.depth * pl->channels;
    const int64_t slice = side_by_side * (int64_t)sizeof(value);
    const int64_t most = slice < GATHERED_BYTES ? GATHERED_BYTES / slice : 1;
    const int64_t all = rows * pl->window.to;
    const bool copies = !reads_in_place(&pl->window);
    pl->rows = !copies || all < most ? all : slices_of_call(all, most);
    pl->grad = copies ? (pl->rows * slice + LINE - 1) / LINE * LINE : 0;
    pl->bias = pl->rest = pl->grad;
    if (pass != KEEL_WEIGHTS) return;
    pl->bias += keel_shape_count(&n->weight[0].shape) * (int64_t)sizeof(float);
    pl->rest = pl->bias + n->weight[0].shape.dim[4] * (int64_t)sizeof(float);
    pl->rest = (pl->rest + LINE - 1) / LINE * LINE;
}

/* Prepares the first of n kernels of conv2d that takes the pass. */
static keel_status slices_prepare(keel_prepare *p, const keel_kernel *const *kernel, int n)
{
    const keel_conv3d_args *a = p->node->args;
    const bool backward = p->pass == KEEL_BACKWARD;
    if (p->pass > KEEL_WEIGHTS || p->rows < 1 || a->groups != 1) return KEEL_EUNSUP;
    if (backward && a->strides[0] != 1) return KEEL_EUNSUP; /* most slices would be zeros */
    plan *pl = keel_calloc(1, sizeof *pl);
    keel_status s = KEEL_EUNSUP;
    if (!pl) return KEEL_ENOMEM;
    fill_node(pl, p->node, backward);
    fill_window(pl, p->node, backward);
    lay_out(pl, p->node, p->pass, p->rows);
    keel_prepare q = *p;
    q.node = &pl->node;
    q.rows = pl->rows;
    q.weight_adds = true;
    q.derive = derive;
    q.context = p;
    for (int i = 0; s == KEEL_EUNSUP && i < n; i++) {
        s = kernel[i]->prepare(&q);
        pl->kernel = s < 0 ? NULL : kernel[i];
    }
    if (s < 0) {
        slices_release(pl);
        return s;
    }
    pl->plan = q.plan;
    p->plan = pl;
    p->scratch = pl->rest + q.scratch;
    return KEEL_OK;
}

/* ---- running --------------------------------------------------------------------------------- */

/* The slices that slice `made` of the call reads, side by side. */
static void gather_slice(const plan *pl, const value *in, int64_t made, value *out)
{
    const window *w = &pl->window;
    const int64_t row = made / w->to, d = made % w->to, line = w->depth * pl->channels;
    for (int64_t i = 0; i < w->depth; i++, out += pl->channels) {
        const int64_t at = d * w->stride + i * w->step - w->pad;
        const bool there = at >= 0 && at < w->from;
        const int64_t slice = there ? row * w->from + at : 0;
        const value *from = in + slice * pl->places * pl->channels;
        for (int64_t p = 0; p < pl->places; p++) {
            value *to = out + p * line;
            if (there)
                VECTOR_EACH(c, pl->channels, m,
                            vx_store_some(m, to + c, vx_load_some(m, from + p * pl->channels + c)));
            else
                memset(to, 0, (size_t)pl->channels * sizeof *to);
        }
    }
}

static const value *gather(const plan *pl, const keel_call *c, const value *in, int64_t made)
{
    value *all = c->scratch;
    if (reads_in_place(&pl->window)) return in + made * pl->places * pl->channels;
    for (int64_t i = 0; i < pl->rows; i++)
        gather_slice(pl, in, made + i, all + i * pl->places * pl->window.depth * pl->channels);
    return all;
}

/* The call as that of the convolution of images: what it reads and writes is set by the caller. */
static keel_call call_of(const keel_call *c)
{
    const plan *pl = c->plan;
    keel_call q = *c;
    q.node = &pl->node;
    q.plan = pl->plan;
    q.rows = pl->rows;
    q.scratch = (char *)c->scratch + pl->rest;
    q.scratch_ready = false;
    return q;
}

static void run_pass(const keel_call *q, const plan *pl, keel_pass pass)
{
    const keel_kernel *k = pl->kernel;
    (sizeof(value) < sizeof(float) ? k->narrow : k->run)[pass](q);
}

static void slices_forward(const keel_call *c)
{
    const plan *pl = c->plan;
    keel_call q = call_of(c);
    for (int64_t i = 0; i < c->rows * pl->window.to; i += pl->rows) {
        const void *in = gather(pl, c, c->in[0], i);
        void *out = (value *)c->out[0] + i * pl->made;
        q.in = &in;
        q.out = &out;
        run_pass(&q, pl, KEEL_FORWARD);
    }
}

static void slices_backward(const keel_call *c)
{
    const plan *pl = c->plan;
    keel_call q = call_of(c);
    if (!c->in_grad[0]) return;
    for (int64_t i = 0; i < c->rows * pl->window.to; i += pl->rows) {
        const void *out_grad = gather(pl, c, c->out_grad[0], i);
        void *in_grad = (value *)c->in_grad[0] + i * pl->made;
        q.out_grad = &out_grad;
        q.in_grad = &in_grad;
        run_pass(&q, pl, KEEL_BACKWARD);
    }
}

/* [taps, KD, C K] to [KD, taps, C K]. */
static void take_gradient(const keel_node *n, float *dw, const float *images, bool adds)
{
    const int64_t *w = n->weight[0].shape.dim, taps = w[1] * w[2], count = w[3] * w[4];
    for (int64_t i = 0; i < w[0]; i++)
        for (int64_t tap = 0; tap < taps; tap++)
            VECTOR_MOVE(dw + (i * taps + tap) * count, images + (tap * w[0] + i) * count, count,
                        adds);
}

static void slices_weights(const keel_call *c)
{
    const plan *pl = c->plan;
    keel_call q = call_of(c);
    float *const dw = c->weight_grad[0], *const db =
                                             c->node->n_weight > 1 ? c->weight_grad[1] : NULL;
    float *const images = (float *)((char *)c->scratch + pl->grad);
    float *const bias = (float *)((char *)c->scratch + pl->bias);
    void *grads[] = { dw ? images : NULL, db ? bias : NULL };
    if (!dw && !db) return;
    q.weight_grad = grads;
    for (int64_t i = 0; i < c->rows * pl->window.to; i += pl->rows) {
        const void *in = gather(pl, c, c->in[0], i);
        const void *out_grad = (const value *)c->out_grad[0] + i * pl->made;
        q.in = &in;
        q.out_grad = &out_grad;
        q.weight_adds = i > 0;
        run_pass(&q, pl, KEEL_WEIGHTS);
    }
    if (dw) take_gradient(c->node, dw, images, c->weight_adds);
    if (db) VECTOR_MOVE(db, bias, c->node->weight[0].shape.dim[4], c->weight_adds);
}

#endif
