/* 2-D convolution (cross-correlation, as in Keras): x [B, H, W, C], kernel [KH, KW, C/G, K], bias
 * [K]; group g of G maps its C/G channels to its K/G outputs.
 *
 *     y[h, w, k] = b[k] + sum over i, j, c of x[h s - p + i d, w s - p + j d, c] kernel[i, j, c, k]
 *
 * Direct loops with the outputs innermost: no copy of the image is made, and every sum has one
 * fixed order. The gradient of the image gathers from the outputs that looked at a pixel. */
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
    keel_shape_text(text, kernel);
    if (kernel->rank != 4)
        return keel_fail(KEEL_ESHAPE,
                         "conv2d: kernel is %s; needs (height, width, channels, "
                         "filters)",
                         text);
    const int64_t c = n->in[0].shape.dim[2], filters = kernel->dim[3];
    if (a->groups < 1 || c % a->groups || filters % a->groups)
        return keel_fail(KEEL_ESHAPE,
                         "conv2d: %lld groups must divide the %lld channels and the %lld filters",
                         (long long)a->groups, (long long)c, (long long)filters);
    if (kernel->dim[2] != c / a->groups)
        return keel_fail(KEEL_ESHAPE,
                         "conv2d: kernel is %s for %lld channels a group; the input has %lld "
                         "channels in %lld groups",
                         text, (long long)kernel->dim[2], (long long)c, (long long)a->groups);
    const keel_shape bias = KEEL_SHAPE(filters);
    if (n->n_weight > 1) KEEL_TRY(keel_infer_weight(n, 1, "bias", &bias));
    KEEL_TRY(keel_window_init(&w, n, "kernel", kernel->dim, a->strides, a->dilation, a->pad));
    const keel_shape out = KEEL_SHAPE(w.out[0], w.out[1], filters);
    return keel_infer_out(n, &out);
}

typedef struct conv { /* the numbers every loop needs */
    keel_window w;
    int64_t groups, c, k, cg, kg; /* channels and filters, whole and of one group */
    int64_t rows, in_row, out_row;
} conv;

static conv conv_of(const keel_call *call)
{
    const keel_node *n = call->node;
    const keel_conv2d_args *a = n->args;
    const int64_t c = n->in[0].shape.dim[2], k = n->out[0].shape.dim[2];
    return (conv){
        .w = keel_window_of(n, n->weight[0].shape.dim, a->strides, a->dilation, a->pad),
        .groups = a->groups,
        .c = c,
        .k = k,
        .cg = c / a->groups,
        .kg = k / a->groups,
        .rows = call->rows,
        .in_row = keel_row_count(&n->in[0]),
        .out_row = keel_row_count(&n->out[0]),
    };
}

static int64_t at_most(int64_t n, int64_t limit)
{
    return n < limit ? n : limit;
}

/* A multiplication and an addition for each output and each tap. */
static double flops(const keel_node *n)
{
    const int64_t *kernel = n->weight[0].shape.dim;
    return 2.0 * (double)keel_row_count(&n->out[0]) * (double)(kernel[0] * kernel[1] * kernel[2]);
}

#define REAL_FILE "ops/conv2d.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    keel_conv2d_args *a = args;
    *a = (keel_conv2d_args){ .strides = { 1, 1 }, .dilation = { 1, 1 }, .groups = 1 };
    keel_case_ints(text, "strides", a->strides, 2);
    keel_case_ints(text, "dilation", a->dilation, 2);
    keel_case_ints(text, "pad", a->pad, 4);
    keel_case_ints(text, "groups", &a->groups, 1);
}

const keel_op keel_op_conv2d = {
    .name = "conv2d",
    .args_size = sizeof(keel_conv2d_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .weights = REALS(weights),
    .weights_reads = KEEL_READS_IN,
    .flops = flops,
    .cases = (const keel_case[]){ { "4,5,3", "3,3,3,4|4", NULL },
                                  { "4,4,2", "3,3,2,3", "pad 1,1,1,1" },
                                  { "5,6,2", "3,2,2,2|2", "strides 2,2 pad 0,1,1,0" },
                                  { "6,6,4", "3,3,2,6|6", "dilation 2,2 groups 2 pad 2,2,2,2" },
                                  { "3,3,5", "1,1,5,66|66", NULL },
                                  { "7,5,1", "2,3,1,2", "strides 3,1 pad 1,0,2,2" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
#include "ops/sums.h"

static void REAL_(forward)(const keel_call *call)
{
    const conv v = conv_of(call);
    const REAL *kernel = call->weight[0], *bias = call->node->n_weight > 1 ? call->weight[1] : NULL;
    for (int64_t row = 0; row < v.rows; row++) {
        const REAL *x = (const REAL *)call->in[0] + row * v.in_row;
        REAL *y = (REAL *)call->out[0] + row * v.out_row;
        for (int64_t h = 0; h < v.w.out[0]; h++)
            for (int64_t w = 0; w < v.w.out[1]; w++)
                for (int64_t g = 0; g < v.groups; g++)
                    for (int64_t k0 = 0; k0 < v.kg; k0 += KEEL_SUMS_BLOCK) {
                        const int64_t first = g * v.kg + k0;
                        const int64_t nk = at_most(v.kg - k0, KEEL_SUMS_BLOCK);
                        double acc[KEEL_SUMS_BLOCK] = { 0 };
                        if (bias) REAL_(add_scaled)(acc, 1, bias + first, nk);
                        for (int64_t i = 0; i < v.w.size[0]; i++)
                            for (int64_t j = 0; j < v.w.size[1]; j++) {
                                const int64_t xh = keel_window_in(&v.w, 0, h, i);
                                const int64_t xw = keel_window_in(&v.w, 1, w, j);
                                if (xh < 0 || xw < 0) continue;
                                const REAL *pixel = x + (xh * v.w.in[1] + xw) * v.c + g * v.cg;
                                const REAL *tap = kernel + (i * v.w.size[1] + j) * v.cg * v.k;
                                for (int64_t c = 0; c < v.cg; c++)
                                    REAL_(add_scaled)(acc, pixel[c], tap + c * v.k + first, nk);
                            }
                        REAL_(store)(y + (h * v.w.out[1] + w) * v.k + first, acc, nk, false);
                    }
    }
}

static void REAL_(backward)(const keel_call *call)
{
    const conv v = conv_of(call);
    const REAL *kernel = call->weight[0];
    if (!call->in_grad[0]) return;
    for (int64_t row = 0; row < v.rows; row++) {
        const REAL *dy = (const REAL *)call->out_grad[0] + row * v.out_row;
        REAL *dx = (REAL *)call->in_grad[0] + row * v.in_row;
        for (int64_t h = 0; h < v.w.in[0]; h++)
            for (int64_t w = 0; w < v.w.in[1]; w++)
                for (int64_t g = 0; g < v.groups; g++)
                    for (int64_t c0 = 0; c0 < v.cg; c0 += KEEL_SUMS_BLOCK) {
                        const int64_t nc = at_most(v.cg - c0, KEEL_SUMS_BLOCK);
                        double acc[KEEL_SUMS_BLOCK] = { 0 };
                        for (int64_t i = 0; i < v.w.size[0]; i++)
                            for (int64_t j = 0; j < v.w.size[1]; j++) {
                                const int64_t yh = keel_window_out(&v.w, 0, h, i);
                                const int64_t yw = keel_window_out(&v.w, 1, w, j);
                                if (yh < 0 || yw < 0) continue;
                                const REAL *at = dy + (yh * v.w.out[1] + yw) * v.k + g * v.kg;
                                const REAL *tap =
                                    kernel + ((i * v.w.size[1] + j) * v.cg + c0) * v.k + g * v.kg;
                                for (int64_t c = 0; c < nc; c++)
                                    acc[c] += REAL_(dot)(at, tap + c * v.k, v.kg);
                            }
                        REAL_(store)
                        (dx + (h * v.w.in[1] + w) * v.c + g * v.cg + c0, acc, nc, call->in_adds[0]);
                    }
    }
}

/* The sums of one tap's [c0 + CHANNELS, k0 + BLOCK] piece, over all places of all rows. */
#define CHANNELS 8

static void REAL_(weights_tap)(const keel_call *call, const conv *v, int64_t i, int64_t j,
                               int64_t c_first, int64_t nc, int64_t k_first, int64_t nk,
                               double acc[CHANNELS][KEEL_SUMS_BLOCK])
{
    for (int64_t row = 0; row < v->rows; row++) {
        const REAL *x = (const REAL *)call->in[0] + row * v->in_row;
        const REAL *dy = (const REAL *)call->out_grad[0] + row * v->out_row;
        for (int64_t h = 0; h < v->w.out[0]; h++) {
            const int64_t xh = keel_window_in(&v->w, 0, h, i);
            for (int64_t w = 0; xh >= 0 && w < v->w.out[1]; w++) {
                const int64_t xw = keel_window_in(&v->w, 1, w, j);
                if (xw < 0) continue;
                const REAL *pixel = x + (xh * v->w.in[1] + xw) * v->c + c_first;
                const REAL *at = dy + (h * v->w.out[1] + w) * v->k + k_first;
                for (int64_t c = 0; c < nc; c++) REAL_(add_scaled)(acc[c], pixel[c], at, nk);
            }
        }
    }
}

static void REAL_(weights)(const keel_call *call)
{
    const conv v = conv_of(call);
    REAL *dw = call->weight_grad[0];
    for (int64_t tap = 0; dw && tap < v.w.size[0] * v.w.size[1]; tap++)
        for (int64_t g = 0; g < v.groups; g++)
            for (int64_t c0 = 0; c0 < v.cg; c0 += CHANNELS)
                for (int64_t k0 = 0; k0 < v.kg; k0 += KEEL_SUMS_BLOCK) {
                    const int64_t nc = at_most(v.cg - c0, CHANNELS);
                    const int64_t nk = at_most(v.kg - k0, KEEL_SUMS_BLOCK);
                    const int64_t k_first = g * v.kg + k0;
                    double acc[CHANNELS][KEEL_SUMS_BLOCK] = { { 0 } };
                    REAL_(weights_tap)
                    (call, &v, tap / v.w.size[1], tap % v.w.size[1], g * v.cg + c0, nc, k_first, nk,
                     acc);
                    for (int64_t c = 0; c < nc; c++) REAL_(store)
                    (dw + (tap * v.cg + c0 + c) * v.k + k_first, acc[c], nk, call->weight_adds);
                }
    if (call->node->n_weight > 1 && call->weight_grad[1]) REAL_(sum_places)
    (call->weight_grad[1], call->out_grad[0], v.rows * v.w.out[0] * v.w.out[1], v.k,
     call->weight_adds);
}
#endif
