/* Mean over windows of an image. Padded pixels do not count, as in TensorFlow. */
#ifndef REAL
#include "ops/derive.h"
#include "ops/pools.h"

static keel_status infer(keel_node *n)
{
    const keel_pool2d_args *a = n->args;
    keel_window w;
    KEEL_TRY(keel_infer_check(n, 1, 0, 0));
    KEEL_TRY(keel_infer_image(n));
    KEEL_TRY(keel_window_init(&w, n, "pool", a->pool, a->strides, NULL, a->pad));
    for (int i = 0; i < 4; i++)
        if (a->pad[i] >= a->pool[i / 2])
            return keel_fail(KEEL_EARG,
                             "average_pool2d: padding %lld is not less than the pool, %lld",
                             (long long)a->pad[i], (long long)a->pool[i / 2]);
    const keel_shape out = KEEL_SHAPE(w.out[0], w.out[1], n->in[0].shape.dim[2]);
    return keel_infer_out(n, &out);
}

static keel_window window_of(const keel_call *c)
{
    const keel_pool2d_args *a = c->node->args;
    return keel_window_of(c->node, a->pool, a->strides, NULL, a->pad);
}

#define REAL_FILE "ops/average_pool2d.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    keel_pool2d_for_case(args, text);
}

static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    const int64_t *in = d->node->in[0].shape.dim;
    const keel_unpool2d_args args = { *(const keel_pool2d_args *)d->node->args, { in[0], in[1] } };
    return keel_derive_one(d, &keel_op_average_unpool2d, &args, d->grad, out);
}

const keel_op keel_op_average_pool2d = {
    .name = "average_pool2d",
    .args_size = sizeof(keel_pool2d_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .derive = derive,
    .cases = (const keel_case[]){ { "4,6,3", NULL, NULL },
                                  { "5,5,2", NULL, "pad 0,1,0,1" },
                                  { "7,6,4", NULL, "pool 3,3 strides 2,2 pad 1,1,0,1" },
                                  { "5,4,70", NULL, "pool 3,2 strides 1,1" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
#include "ops/sums.h"

static void REAL_(forward)(const keel_call *call)
{
    const keel_window v = window_of(call);
    const int64_t c = call->node->out[0].shape.dim[2];
    const REAL *x = call->in[0];
    REAL *y = call->out[0];
    for (int64_t place = 0; place < call->rows * v.out[0] * v.out[1]; place++) {
        const int64_t w = place % v.out[1], line = place / v.out[1];
        const int64_t h = line % v.out[0], row = line / v.out[0];
        const double share =
            1.0 / (double)(keel_window_covers(&v, 0, h) * keel_window_covers(&v, 1, w));
        for (int64_t k0 = 0; k0 < c; k0 += KEEL_SUMS_BLOCK) {
            const int64_t nk = c - k0 < KEEL_SUMS_BLOCK ? c - k0 : KEEL_SUMS_BLOCK;
            double acc[KEEL_SUMS_BLOCK] = { 0 };
            for (int64_t tap = 0; tap < v.size[0] * v.size[1]; tap++) {
                const int64_t xh = keel_window_in(&v, 0, h, tap / v.size[1]);
                const int64_t xw = keel_window_in(&v, 1, w, tap % v.size[1]);
                if (xh < 0 || xw < 0) continue;
                REAL_(add_scaled)(acc, 1, x + ((row * v.in[0] + xh) * v.in[1] + xw) * c + k0, nk);
            }
            for (int64_t k = 0; k < nk; k++) y[place * c + k0 + k] = (REAL)(acc[k] * share);
        }
    }
}

static void REAL_(backward)(const keel_call *call)
{
    const keel_window v = window_of(call);
    const int64_t c = call->node->out[0].shape.dim[2];
    const REAL *dy = call->out_grad[0];
    REAL *dx = call->in_grad[0];
    for (int64_t place = 0; dx && place < call->rows * v.in[0] * v.in[1]; place++) {
        const int64_t w = place % v.in[1], line = place / v.in[1];
        const int64_t h = line % v.in[0], row = line / v.in[0];
        for (int64_t k0 = 0; k0 < c; k0 += KEEL_SUMS_BLOCK) {
            const int64_t nk = c - k0 < KEEL_SUMS_BLOCK ? c - k0 : KEEL_SUMS_BLOCK;
            double acc[KEEL_SUMS_BLOCK] = { 0 };
            for (int64_t tap = 0; tap < v.size[0] * v.size[1]; tap++) {
                const int64_t yh = keel_window_out(&v, 0, h, tap / v.size[1]);
                const int64_t yw = keel_window_out(&v, 1, w, tap % v.size[1]);
                if (yh < 0 || yw < 0) continue;
                const double share =
                    1.0 / (double)(keel_window_covers(&v, 0, yh) * keel_window_covers(&v, 1, yw));
                const REAL *at = dy + ((row * v.out[0] + yh) * v.out[1] + yw) * c + k0;
                for (int64_t k = 0; k < nk; k++) acc[k] += at[k] * share;
            }
            REAL_(store)(dx + place * c + k0, acc, nk, call->in_adds[0]);
        }
    }
}
#endif
