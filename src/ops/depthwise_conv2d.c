/* Depthwise convolution: each channel has its own M filters; x [B, H, W, C], kernel [KH, KW, C, M],
 * bias [C M]; output channel c M + m, as Keras.
 *
 *     y[h, w, c M + m] = b[c M + m] + sum over i, j of x[.., .., c] kernel[i, j, c, m]          */
#ifndef REAL
#include "ops/args.h"
#include "ops/cases.h"
#include "ops/window.h"

static keel_status infer(keel_node *n)
{
    const keel_conv2d_args *a = n->args;
    keel_window w;
    char text[96];
    KEEL_TRY(keel_infer_check(n, 1, 1, 2));
    KEEL_TRY(keel_infer_image(n));
    const keel_shape *kernel = &n->weight[0].shape;
    const int64_t c = n->in[0].shape.dim[2];
    keel_shape_text(text, kernel);
    if (kernel->rank != 4 || kernel->dim[2] != c)
        return keel_fail(KEEL_ESHAPE,
                         "depthwise_conv2d: kernel is %s; an input of %lld channels needs (height, "
                         "width, %lld, multiplier)",
                         text, (long long)c, (long long)c);
    const keel_shape bias = KEEL_SHAPE(c * kernel->dim[3]);
    if (n->n_weight > 1) KEEL_TRY(keel_infer_weight(n, 1, "bias", &bias));
    KEEL_TRY(keel_window_init(&w, n, "kernel", kernel->dim, a->strides, a->dilation, a->pad));
    const keel_shape out = KEEL_SHAPE(w.out[0], w.out[1], bias.dim[0]);
    return keel_infer_out(n, &out);
}

static keel_window window_of(const keel_call *c)
{
    const keel_conv2d_args *a = c->node->args;
    return keel_window_of(c->node, c->node->weight[0].shape.dim, a->strides, a->dilation, a->pad);
}

static double flops(const keel_node *n)
{
    const int64_t *kernel = n->weight[0].shape.dim;
    return 2.0 * (double)keel_row_count(&n->out[0]) * (double)(kernel[0] * kernel[1]);
}

#define REAL_FILE "ops/depthwise_conv2d.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    keel_conv2d_args *a = args;
    *a = (keel_conv2d_args){ .strides = { 1, 1 }, .dilation = { 1, 1 }, .groups = 1 };
    keel_case_ints(text, "strides", a->strides, 2);
    keel_case_ints(text, "dilation", a->dilation, 2);
    keel_case_ints(text, "pad", a->pad, 4);
}

const keel_op keel_op_depthwise_conv2d = {
    .name = "depthwise_conv2d",
    .args_size = sizeof(keel_conv2d_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .weights = REALS(weights),
    .weights_reads = KEEL_READS_IN,
    .flops = flops,
    .cases = (const keel_case[]){ { "4,5,3", "3,3,3,1|3", "pad 1,1,1,1" },
                                  { "5,5,2", "3,2,2,3|6", "strides 2,2 pad 0,1,0,1" },
                                  { "6,6,33", "2,2,33,2", "dilation 2,2" },
                                  { "4,4,70", "3,3,70,1", "strides 2,2 pad 0,1,0,1" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
#include "ops/sums.h"

/* acc[q] += a[(first + q) / m] b[first + q]: channels against filters */
static void REAL_(add_products)(double *acc, const REAL *a, const REAL *b, int64_t first, int64_t n,
                                int64_t m)
{
    if (m == 1)
        for (int64_t q = 0; q < n; q++) acc[q] += (double)a[first + q] * b[first + q];
    else
        for (int64_t q = 0; q < n; q++) acc[q] += (double)a[(first + q) / m] * b[first + q];
}

static void REAL_(forward)(const keel_call *call)
{
    const keel_window v = window_of(call);
    const int64_t c = call->node->in[0].shape.dim[2], k = call->node->out[0].shape.dim[2],
                  m = k / c;
    const REAL *kernel = call->weight[0], *bias = call->node->n_weight > 1 ? call->weight[1] : NULL;
    for (int64_t row = 0; row < call->rows; row++) {
        const REAL *x = (const REAL *)call->in[0] + row * v.in[0] * v.in[1] * c;
        REAL *y = (REAL *)call->out[0] + row * v.out[0] * v.out[1] * k;
        for (int64_t h = 0; h < v.out[0]; h++)
            for (int64_t w = 0; w < v.out[1]; w++)
                for (int64_t k0 = 0; k0 < k; k0 += KEEL_SUMS_BLOCK) {
                    const int64_t nk = k - k0 < KEEL_SUMS_BLOCK ? k - k0 : KEEL_SUMS_BLOCK;
                    double acc[KEEL_SUMS_BLOCK] = { 0 };
                    if (bias) REAL_(add_scaled)(acc, 1, bias + k0, nk);
                    for (int64_t tap = 0; tap < v.size[0] * v.size[1]; tap++) {
                        const int64_t xh = keel_window_in(&v, 0, h, tap / v.size[1]);
                        const int64_t xw = keel_window_in(&v, 1, w, tap % v.size[1]);
                        if (xh >= 0 && xw >= 0) REAL_(add_products)
                        (acc, x + (xh * v.in[1] + xw) * c, kernel + tap * k, k0, nk, m);
                    }
                    REAL_(store)(y + (h * v.out[1] + w) * k + k0, acc, nk, false);
                }
    }
}

static void REAL_(backward)(const keel_call *call)
{
    const keel_window v = window_of(call);
    const int64_t c = call->node->in[0].shape.dim[2], k = call->node->out[0].shape.dim[2],
                  m = k / c;
    const REAL *kernel = call->weight[0];
    if (!call->in_grad[0]) return;
    for (int64_t row = 0; row < call->rows; row++) {
        const REAL *dy = (const REAL *)call->out_grad[0] + row * v.out[0] * v.out[1] * k;
        REAL *dx = (REAL *)call->in_grad[0] + row * v.in[0] * v.in[1] * c;
        for (int64_t h = 0; h < v.in[0]; h++)
            for (int64_t w = 0; w < v.in[1]; w++)
                for (int64_t c0 = 0; c0 < c; c0 += KEEL_SUMS_BLOCK) {
                    const int64_t nc = c - c0 < KEEL_SUMS_BLOCK ? c - c0 : KEEL_SUMS_BLOCK;
                    double acc[KEEL_SUMS_BLOCK] = { 0 };
                    for (int64_t tap = 0; tap < v.size[0] * v.size[1]; tap++) {
                        const int64_t yh = keel_window_out(&v, 0, h, tap / v.size[1]);
                        const int64_t yw = keel_window_out(&v, 1, w, tap % v.size[1]);
                        if (yh < 0 || yw < 0) continue;
                        const REAL *at = dy + (yh * v.out[1] + yw) * k + c0 * m;
                        const REAL *filter = kernel + tap * k + c0 * m;
                        if (m == 1)
                            REAL_(add_products)(acc, at, filter, 0, nc, 1);
                        else
                            for (int64_t q = 0; q < nc; q++)
                                acc[q] += REAL_(dot)(at + q * m, filter + q * m, m);
                    }
                    REAL_(store)(dx + (h * v.in[1] + w) * c + c0, acc, nc, call->in_adds[0]);
                }
    }
}

static void REAL_(weights)(const keel_call *call)
{
    const keel_window v = window_of(call);
    const int64_t c = call->node->in[0].shape.dim[2], k = call->node->out[0].shape.dim[2],
                  m = k / c;
    const REAL *all_x = call->in[0], *all_dy = call->out_grad[0];
    REAL *dw = call->weight_grad[0];
    for (int64_t tap = 0; dw && tap < v.size[0] * v.size[1]; tap++)
        for (int64_t k0 = 0; k0 < k; k0 += KEEL_SUMS_BLOCK) {
            const int64_t nk = k - k0 < KEEL_SUMS_BLOCK ? k - k0 : KEEL_SUMS_BLOCK;
            double acc[KEEL_SUMS_BLOCK] = { 0 };
            for (int64_t line = 0; line < call->rows * v.out[0]; line++) {
                const int64_t row = line / v.out[0];
                const int64_t xh = keel_window_in(&v, 0, line % v.out[0], tap / v.size[1]);
                for (int64_t w = 0; xh >= 0 && w < v.out[1]; w++) {
                    const int64_t xw = keel_window_in(&v, 1, w, tap % v.size[1]);
                    if (xw < 0) continue;
                    REAL_(add_products)
                    (acc, all_x + ((row * v.in[0] + xh) * v.in[1] + xw) * c,
                     all_dy + (line * v.out[1] + w) * k, k0, nk, m);
                }
            }
            REAL_(store)(dw + tap * k + k0, acc, nk, call->weight_adds);
        }
    if (call->node->n_weight > 1 && call->weight_grad[1]) REAL_(sum_places)
    (call->weight_grad[1], all_dy, call->rows * v.out[0] * v.out[1], k, call->weight_adds);
}
#endif
