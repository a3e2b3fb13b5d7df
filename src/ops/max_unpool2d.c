/* The gradient of max_pool2d as an op, of its image and the gradient of its output: each window
 * gives its number to the pixel that won there. Which one that is has no gradient. For gradients
 * that are differentiated themselves (ops/derive.h). */
#ifndef REAL
#include "ops/pools.h"
#include <math.h>

static keel_status infer(keel_node *n)
{
    const keel_pool2d_args *a = n->args;
    keel_window w;
    KEEL_TRY(keel_infer_check(n, 2, 0, 0));
    KEEL_TRY(keel_infer_image(n));
    KEEL_TRY(keel_window_init(&w, n, "pool", a->pool, a->strides, NULL, a->pad));
    const keel_shape of = KEEL_SHAPE(w.out[0], w.out[1], n->in[0].shape.dim[2]);
    if (!keel_shape_equal(&of, &n->in[1].shape))
        return keel_fail(KEEL_ESHAPE, "max_unpool2d: the pooling has %lld x %lld windows",
                         (long long)w.out[0], (long long)w.out[1]);
    return keel_infer_out(n, &n->in[0].shape);
}

static keel_window window_of(const keel_call *c)
{
    const keel_pool2d_args *a = c->node->args;
    return keel_window_between(&c->node->in[0].shape, &c->node->in[1].shape, a->pool, a->strides,
                               NULL, a->pad);
}

#define REAL_FILE "ops/max_unpool2d.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    keel_pool2d_for_case(args, text);
}

const keel_op keel_op_max_unpool2d = {
    .name = "max_unpool2d",
    .args_size = sizeof(keel_pool2d_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_FIRST,
    .cases = (const keel_case[]){ { "4,6,3|2,3,3", NULL, NULL },
                                  { "5,5,2|3,3,2", NULL, "pad 0,1,0,1" },
                                  { "7,6,4|4,3,4", NULL, "pool 3,3 strides 2,2 pad 1,1,0,1 relu" },
                                  { "5,4,1|3,3,1", NULL, "pool 3,2 strides 1,1" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
/* The pixel of that row and channel that won in a window; -1: none. As in max_pool2d. */
static int64_t REAL_(winner)(const keel_window *v, const REAL *x, int64_t oh, int64_t ow,
                             int64_t channels, bool relu)
{
    int64_t best = -1;
    for (int64_t tap = 0; tap < v->size[0] * v->size[1]; tap++) {
        const int64_t h = keel_window_in(v, 0, oh, tap / v->size[1]);
        const int64_t w = keel_window_in(v, 1, ow, tap % v->size[1]);
        if (h < 0 || w < 0) continue;
        const int64_t at = (h * v->in[1] + w) * channels;
        if (best < 0 || x[at] > x[best] || isnan(x[at])) best = at;
    }
    return relu && x[best] <= 0 ? -1 : best;
}

static void REAL_(forward)(const keel_call *c)
{
    const keel_window v = window_of(c);
    const int64_t channels = c->node->in[0].shape.dim[2], pixels = v.in[0] * v.in[1] * channels;
    const bool relu = ((const keel_pool2d_args *)c->node->args)->relu;
    const REAL *x = c->in[0], *grad = c->in[1];
    REAL *y = c->out[0];
    for (int64_t i = 0; i < c->rows * pixels; i++) y[i] = 0;
    for (int64_t i = 0; i < c->rows * v.out[0] * v.out[1] * channels; i++) {
        const int64_t k = i % channels, place = i / channels, ow = place % v.out[1];
        const int64_t oh = place / v.out[1] % v.out[0];
        const int64_t first = place / v.out[1] / v.out[0] * pixels + k;
        const int64_t at = REAL_(winner)(&v, x + first, oh, ow, channels, relu);
        if (at >= 0) y[first + at] += grad[i];
    }
}

static void REAL_(backward)(const keel_call *c)
{
    const keel_window v = window_of(c);
    const int64_t channels = c->node->in[0].shape.dim[2], pixels = v.in[0] * v.in[1] * channels;
    const bool relu = ((const keel_pool2d_args *)c->node->args)->relu;
    const REAL *x = c->in[0], *dy = c->out_grad[0];
    REAL *dx = c->in_grad[0], *dgrad = c->in_grad[1];
    for (int64_t i = 0; dx && !c->in_adds[0] && i < c->rows * pixels; i++) dx[i] = 0;
    for (int64_t i = 0; dgrad && i < c->rows * v.out[0] * v.out[1] * channels; i++) {
        const int64_t k = i % channels, place = i / channels, ow = place % v.out[1];
        const int64_t oh = place / v.out[1] % v.out[0];
        const int64_t first = place / v.out[1] / v.out[0] * pixels + k;
        const int64_t at = REAL_(winner)(&v, x + first, oh, ow, channels, relu);
        const REAL g = at >= 0 ? dy[first + at] : 0;
        dgrad[i] = c->in_adds[1] ? dgrad[i] + g : g;
    }
}
#endif
