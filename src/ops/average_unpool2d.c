/* The gradient of average_pool2d as an op: each window gives every pixel of the image that it
 * covers its share. For gradients that are differentiated themselves (ops/derive.h). */
#ifndef REAL
#include "ops/derive.h"
#include "ops/pools.h"

static keel_status infer(keel_node *n)
{
    const keel_unpool2d_args *a = n->args;
    const keel_pool2d_args *p = &a->pooling;
    keel_window w;
    KEEL_TRY(keel_infer_check(n, 1, 0, 0));
    KEEL_TRY(keel_infer_image(n));
    const keel_shape *in = &n->in[0].shape, image = KEEL_SHAPE(a->to[0], a->to[1], in->dim[2]);
    KEEL_TRY(keel_window_over(&w, n, &image, "pool", p->pool, p->strides, NULL, p->pad));
    if (w.out[0] != in->dim[0] || w.out[1] != in->dim[1])
        return keel_fail(KEEL_ESHAPE, "average_unpool2d: the pooling has %lld x %lld windows",
                         (long long)w.out[0], (long long)w.out[1]);
    return keel_infer_out(n, &image);
}

static keel_window window_of(const keel_call *c)
{
    const keel_pool2d_args *p = &((const keel_unpool2d_args *)c->node->args)->pooling;
    return keel_window_between(&c->node->out[0].shape, &c->node->in[0].shape, p->pool, p->strides,
                               NULL, p->pad);
}

#define REAL_FILE "ops/average_unpool2d.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    keel_unpool2d_args *a = args;
    keel_pool2d_for_case(&a->pooling, text);
    keel_case_ints(text, "to", a->to, 2);
}

static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    const keel_unpool2d_args *a = d->node->args;
    return keel_derive_one(d, &keel_op_average_pool2d, &a->pooling, d->grad, out);
}

const keel_op keel_op_average_unpool2d = {
    .name = "average_unpool2d",
    .args_size = sizeof(keel_unpool2d_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .derive = derive,
    .cases = (const keel_case[]){ { "2,3,3", NULL, "to 4,6" },
                                  { "3,3,2", NULL, "to 5,5 pad 0,1,0,1" },
                                  { "4,3,4", NULL, "to 7,6 pool 3,3 strides 2,2 pad 1,1,0,1" },
                                  { "3,3,1", NULL, "to 5,4 pool 3,2 strides 1,1" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
static void REAL_(forward)(const keel_call *c)
{
    const keel_window v = window_of(c);
    const int64_t channels = c->node->in[0].shape.dim[2];
    const REAL *x = c->in[0];
    REAL *y = c->out[0];
    for (int64_t i = 0; i < c->rows * v.in[0] * v.in[1] * channels; i++) {
        const int64_t k = i % channels, place = i / channels, w = place % v.in[1];
        const int64_t h = place / v.in[1] % v.in[0], row = place / v.in[1] / v.in[0];
        double sum = 0;
        for (int64_t tap = 0; tap < v.size[0] * v.size[1]; tap++) {
            const int64_t oh = keel_window_out(&v, 0, h, tap / v.size[1]);
            const int64_t ow = keel_window_out(&v, 1, w, tap % v.size[1]);
            if (oh < 0 || ow < 0) continue;
            const int64_t n = keel_window_covers(&v, 0, oh) * keel_window_covers(&v, 1, ow);
            sum += (double)x[((row * v.out[0] + oh) * v.out[1] + ow) * channels + k] / (double)n;
        }
        y[i] = (REAL)sum;
    }
}

static void REAL_(backward)(const keel_call *c)
{
    const keel_window v = window_of(c);
    const int64_t channels = c->node->in[0].shape.dim[2];
    const REAL *dy = c->out_grad[0];
    REAL *dx = c->in_grad[0];
    for (int64_t i = 0; dx && i < c->rows * v.out[0] * v.out[1] * channels; i++) {
        const int64_t k = i % channels, place = i / channels, ow = place % v.out[1];
        const int64_t oh = place / v.out[1] % v.out[0], row = place / v.out[1] / v.out[0];
        double sum = 0;
        for (int64_t tap = 0; tap < v.size[0] * v.size[1]; tap++) {
            const int64_t h = keel_window_in(&v, 0, oh, tap / v.size[1]);
            const int64_t w = keel_window_in(&v, 1, ow, tap % v.size[1]);
            if (h < 0 || w < 0) continue;
            sum += (double)dy[((row * v.in[0] + h) * v.in[1] + w) * channels + k];
        }
        sum /= (double)(keel_window_covers(&v, 0, oh) * keel_window_covers(&v, 1, ow));
        dx[i] = (REAL)(c->in_adds[0] ? (double)dx[i] + sum : sum);
    }
}
#endif
