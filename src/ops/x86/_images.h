/* What kernels share that put images together in scratch for kernels of conv2d (_slices.h,
 * _pieces.h). These images have other channels, and other weights, than the values of the op.
 *
 * The including file defines `value`, the type that values are held in, and `shape`, of which two
 * members are read here: how many images are made `to` a row of the op, and the numbers `made` of
 * each. It also gives the functions that are declared first. */
#ifndef KEEL_OPS_X86_IMAGES_H
#define KEEL_OPS_X86_IMAGES_H
#include "base/memory.h"
#include "ops/x86/_inner.h"

enum { IMAGES_BYTES = 1 << 22, LINE = 64 };

typedef struct plan {
    inner inner; /* the convolution of images */
    shape shape;
    int64_t rows;             /* images of a call */
    int64_t grad, bias, rest; /* where they lie in scratch, in bytes: gradients, the kernel's */
} plan;

/* Makes the weights of images of the op's own. */
static void turn_weights(const shape *s, float *images, const float *own);
/* The other way, for gradients. */
static void turn_gradient(const shape *s, float *own, const float *images, bool adds);
/* The images of a call, from `image` on, put together from `in`; or a part of `in`, if that is what
 * they are. */
static const value *gather(const plan *pl, const keel_call *c, const value *in, int64_t image);

static int64_t to_line(int64_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

/* ---- weights --------------------------------------------------------------------------------- */

/* A kernel's own copy of the weights. It is made from the weights of images, which lie behind it.
 */
typedef struct turned {
    keel_derived want;
    shape shape;
} turned;

static void refresh(const keel_derived *d, const void *weight)
{
    const turned *t = d->plan;
    keel_derived images = t->want;
    float *behind = (float *)((char *)d->data + to_line((int64_t)t->want.bytes));
    images.data = d->data;
    turn_weights(&t->shape, behind, weight);
    images.refresh(&images, behind);
}

static void release_turned(void *plan_)
{
    turned *t = plan_;
    if (t->want.release) t->want.release(t->want.plan);
    keel_free(t);
}

typedef struct asking {
    const keel_prepare *p;
    const plan *plan;
} asking;

static keel_status derive(void *context, keel_derived *want, const keel_derived **got)
{
    enum { KEY = 0x736c69636573 };
    const asking *ask = context;
    const size_t numbers = (size_t)keel_shape_count(&ask->plan->inner.weight[0].shape);
    turned *t = keel_calloc(1, sizeof *t);
    if (!t) {
        if (want->release) want->release(want->plan);
        return KEEL_ENOMEM;
    }
    *t = (turned){ .want = *want, .shape = ask->plan->shape };
    keel_derived all = { .bytes = (size_t)to_line((int64_t)want->bytes) + numbers * sizeof(float),
                         .weight = want->weight,
                         .key = 31 * want->key + KEY,
                         .refresh = refresh,
                         .release = release_turned,
                         .plan = t };
    return ask->p->derive(ask->p->context, &all, got);
}

/* ---- prepare --------------------------------------------------------------------------------- */

static void images_release(void *plan_)
{
    plan *pl = plan_;
    if (pl) inner_release(&pl->inner);
    keel_free(pl);
}

/* Images of a call, so that all calls are alike: about as many as stay in the cache. */
static int64_t images_of_call(int64_t all, int64_t bytes)
{
    int64_t most = bytes < IMAGES_BYTES ? IMAGES_BYTES / bytes : 1;
    if (all <= most) return all;
    for (int64_t n = most; n > most / 2; n--)
        if (all % n == 0) return n;
    for (int64_t n = most; n < 4 * most && n <= all; n++)
        if (all % n == 0) return n;
    while (all % most) most--;
    return most;
}

/* Where things lie in scratch behind `bytes` of images: gradients of weights, the kernel's. */
static void lay_out(plan *pl, keel_pass pass, int64_t bytes)
{
    pl->grad = pl->bias = pl->rest = to_line(bytes);
    if (pass != KEEL_WEIGHTS) return;
    pl->bias += keel_shape_count(&pl->inner.weight[0].shape) * (int64_t)sizeof(float);
    pl->rest = to_line(pl->bias + pl->inner.weight[0].shape.dim[3] * (int64_t)sizeof(float));
}

/* Prepares the first of n kernels of conv2d that takes the pass, and hands the plan over. */
static keel_status images_prepare(keel_prepare *p, plan *pl, const keel_kernel *const *kernel,
                                  int n)
{
    asking ask = { p, pl };
    keel_prepare q = *p;
    q.rows = pl->rows;
    q.weight_adds = true;
    q.derive = derive;
    q.context = &ask;
    const keel_status s = inner_prepare(&pl->inner, &q, kernel, n);
    if (s < 0) {
        images_release(pl);
        return s;
    }
    p->plan = pl;
    p->scratch = pl->rest + q.scratch;
    return KEEL_OK;
}

/* ---- running --------------------------------------------------------------------------------- */

/* The call of the inner kernel: what it reads and writes is set by the caller. */
static keel_call call_of(const keel_call *c)
{
    const plan *pl = c->plan;
    keel_call q = inner_call(&pl->inner, c);
    q.rows = pl->rows;
    q.scratch = (char *)c->scratch + pl->rest;
    q.scratch_ready = false;
    return q;
}

static void images_forward(const keel_call *c)
{
    const plan *pl = c->plan;
    keel_call q = call_of(c);
    for (int64_t i = 0; i < c->rows * pl->shape.to; i += pl->rows) {
        const void *in = gather(pl, c, c->in[0], i);
        void *out = (value *)c->out[0] + i * pl->shape.made;
        q.in = &in;
        q.out = &out;
        inner_run(&pl->inner, &q, KEEL_FORWARD);
    }
}

static void images_weights(const keel_call *c)
{
    const plan *pl = c->plan;
    keel_call q = call_of(c);
    float *const dw = c->weight_grad[0];
    float *const db = c->node->n_weight > 1 ? c->weight_grad[1] : NULL;
    float *const images = (float *)((char *)c->scratch + pl->grad);
    float *const bias = (float *)((char *)c->scratch + pl->bias);
    void *grads[] = { dw ? images : NULL, db ? bias : NULL };
    if (!dw && !db) return;
    q.weight_grad = grads;
    for (int64_t i = 0; i < c->rows * pl->shape.to; i += pl->rows) {
        const void *in = gather(pl, c, c->in[0], i);
        const void *out_grad = (const value *)c->out_grad[0] + i * pl->shape.made;
        q.in = &in;
        q.out_grad = &out_grad;
        q.weight_adds = i > 0;
        inner_run(&pl->inner, &q, KEEL_WEIGHTS);
    }
    if (dw) turn_gradient(&pl->shape, dw, images, c->weight_adds);
    if (db) VECTOR_MOVE(db, bias, pl->inner.weight[0].shape.dim[3], c->weight_adds);
}

static void copy_channels(value *to, const value *from, int64_t n)
{
    VECTOR_EACH(c, n, m, vx_store_some(m, to + c, vx_load_some(m, from + c)));
}

#endif
