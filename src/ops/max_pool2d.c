/* Maximum over windows of an image; padding never wins. The gradient goes to the first largest
 * pixel of its window, as in TensorFlow.
 *
 * With relu, a window without a positive pixel gives 0, and none of its pixels gets a gradient. The
 * bits equal those of a relu before the pooling, which would read more elements.
 *
 * Forward notes for backward which tap of the window won, counted over the whole window with its
 * padding: in one byte if the window has less than 255 taps, else in an int32. oneDNN counts in the
 * same way, so its forward works with this backward. */
#ifndef REAL
#include "ops/derive.h"
#include "ops/pools.h"
#include <math.h>

enum { NOBODY = -1 }; /* the tap of a window in which none won; 255 as a byte */

static keel_status infer(keel_node *n)
{
    const keel_pool2d_args *a = n->args;
    keel_window w;
    KEEL_TRY(keel_infer_check(n, 1, 0, 0));
    KEEL_TRY(keel_infer_image(n));
    KEEL_TRY(keel_window_init(&w, n, "pool", a->pool, a->strides, NULL, a->pad));
    for (int i = 0; i < 4; i++)
        if (a->pad[i] >= a->pool[i / 2])
            return keel_fail(KEEL_EARG, "max_pool2d: padding %lld is not less than the pool, %lld",
                             (long long)a->pad[i], (long long)a->pool[i / 2]);
    const keel_shape out = KEEL_SHAPE(w.out[0], w.out[1], n->in[0].shape.dim[2]);
    const keel_spec taps = { a->pool[0] * a->pool[1] < 255 ? KEEL_UINT8 : KEEL_INT32, out };
    if (n->backward) KEEL_TRY(keel_node_add_saved(n, &taps));
    return keel_infer_out(n, &out);
}

static keel_window window_of(const keel_call *c)
{
    const keel_pool2d_args *a = c->node->args;
    return keel_window_of(c->node, a->pool, a->strides, NULL, a->pad);
}

static void note(const keel_call *c, int64_t at, int64_t tap)
{
    if (c->node->n_saved == 0) return;
    if (c->node->saved[0].dtype == KEEL_UINT8)
        ((uint8_t *)c->saved[0])[at] = (uint8_t)tap;
    else
        ((int32_t *)c->saved[0])[at] = (int32_t)tap;
}

static int64_t noted(const keel_call *c, int64_t at)
{
    if (c->node->saved[0].dtype == KEEL_INT32) return ((const int32_t *)c->saved[0])[at];
    const uint8_t tap = ((const uint8_t *)c->saved[0])[at];
    return tap == (uint8_t)NOBODY ? NOBODY : tap;
}

#define REAL_FILE "ops/max_pool2d.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    keel_pool2d_for_case(args, text);
}

static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    const int in[2] = { d->in[0], d->grad };
    return d->emit(d, &keel_op_max_unpool2d, d->node->args, in, 2, 0, NULL, out);
}

const keel_op keel_op_max_pool2d = {
    .name = "max_pool2d",
    .args_size = sizeof(keel_pool2d_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .derive = derive,
    .backward_reads = KEEL_READS_SAVED,
    .cases = (const keel_case[]){ { "4,6,3", NULL, NULL },
                                  { "5,5,2", NULL, "pad 0,1,0,1" },
                                  { "7,6,4", NULL, "pool 3,3 strides 2,2 pad 1,1,0,1 relu" },
                                  { "17,17,1", NULL, "pool 16,16 strides 1,1 relu" },
                                  { "7,6,4", NULL, "pool 3,3 strides 2,2 pad 1,1,0,1" },
                                  { "5,4,1", NULL, "pool 3,2 strides 1,1" },
                                  { "17,17,1", NULL, "pool 16,16 strides 1,1" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
static void REAL_(forward)(const keel_call *call)
{
    const keel_window v = window_of(call);
    const int64_t c = call->node->out[0].shape.dim[2];
    const bool relu = ((const keel_pool2d_args *)call->node->args)->relu;
    const REAL *x = call->in[0];
    REAL *y = call->out[0];
    for (int64_t place = 0; place < call->rows * v.out[0] * v.out[1]; place++) {
        const int64_t w = place % v.out[1], line = place / v.out[1];
        const int64_t h = line % v.out[0], row = line / v.out[0];
        for (int64_t k = 0; k < c; k++) {
            REAL best = (REAL)-INFINITY;
            int64_t best_tap = -1;
            for (int64_t tap = 0; tap < v.size[0] * v.size[1]; tap++) {
                const int64_t xh = keel_window_in(&v, 0, h, tap / v.size[1]);
                const int64_t xw = keel_window_in(&v, 1, w, tap % v.size[1]);
                if (xh < 0 || xw < 0) continue;
                const REAL p = x[((row * v.in[0] + xh) * v.in[1] + xw) * c + k];
                if (best_tap >= 0 && !(p > best) && !isnan(p)) continue; /* a NaN stays a NaN */
                best = p;
                best_tap = tap;
            }
            if (relu && best <= 0) {
                best = 0;
                best_tap = NOBODY;
            }
            y[place * c + k] = best;
            note(call, place * c + k, best_tap);
        }
    }
}

static void REAL_(backward)(const keel_call *call)
{
    const keel_window v = window_of(call);
    const int64_t c = call->node->out[0].shape.dim[2];
    const REAL *dy = call->out_grad[0];
    REAL *dx = call->in_grad[0];
    if (!dx) return;
    if (!call->in_adds[0])
        for (int64_t i = 0; i < call->rows * v.in[0] * v.in[1] * c; i++) dx[i] = 0;
    for (int64_t place = 0; place < call->rows * v.out[0] * v.out[1]; place++) {
        const int64_t w = place % v.out[1], line = place / v.out[1];
        const int64_t h = line % v.out[0], row = line / v.out[0];
        for (int64_t k = 0; k < c; k++) {
            const int64_t tap = noted(call, place * c + k);
            if (tap == NOBODY) continue;
            const int64_t xh = keel_window_in(&v, 0, h, tap / v.size[1]);
            const int64_t xw = keel_window_in(&v, 1, w, tap % v.size[1]);
            dx[((row * v.in[0] + xh) * v.in[1] + xw) * c + k] += dy[place * c + k];
        }
    }
}
#endif
