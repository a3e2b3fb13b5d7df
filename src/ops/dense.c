/* Dense: y = x W + b on the last axis; x is [B, ..., C], W [C, K], b [K].
 * dx = dy W^T; dW = x^T dy and db = sum of dy, over all places of all rows. */
#ifndef REAL
#include "ops/infer.h"
#include "ops/derive.h"
#include "tensor/bfloat16.h"

static keel_status infer(keel_node *n)
{
    KEEL_TRY(keel_infer_check(n, 1, 1, 2));
    keel_shape out = n->in[0].shape;
    char text[96];
    keel_shape_text(text, &n->weight[0].shape);
    if (n->weight[0].shape.rank != 2)
        return keel_fail(KEEL_ESHAPE, "dense: kernel is %s; needs (inputs, units)", text);
    if (out.rank < 1) return keel_fail(KEEL_ESHAPE, "dense: a row of the input needs an axis");
    int64_t *last = &out.dim[out.rank - 1];
    if (*last != n->weight[0].shape.dim[0])
        return keel_fail(KEEL_ESHAPE, "dense: the input's last axis is %lld and the kernel is %s",
                         (long long)*last, text);
    *last = n->weight[0].shape.dim[1];
    const keel_shape bias = KEEL_SHAPE(*last);
    if (n->n_weight > 1) KEEL_TRY(keel_infer_weight(n, 1, "bias", &bias));
    return keel_infer_out(n, &out);
}

/* y[places, k] = x[places, c] W[c, k] */
typedef struct dims {
    int64_t places, c, k;
} dims;

static dims dims_of(const keel_call *call)
{
    const keel_shape *w = &call->node->weight[0].shape;
    return (dims){ call->rows * (keel_row_count(&call->node->in[0]) / w->dim[0]), w->dim[0],
                   w->dim[1] };
}

static double flops(const keel_node *n)
{
    return 2.0 * (double)keel_row_count(&n->out[0]) * (double)n->weight[0].shape.dim[0];
}

#define REAL_FILE "ops/dense.c"
#include "ops/real.h"

static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    return keel_derive_weighted(d, &keel_op_dense_transposed, NULL, d->grad, 0, out);
}

const keel_op keel_op_dense = {
    .name = "dense",
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .derive = derive,
    .weights = REALS(weights),
    .weights_tile = REALS(weights_tile),
    .weights_reads = KEEL_READS_IN,
    .flops = flops,
    .cases = (const keel_case[]){ { "5", "5,3|3", NULL },
                                  { "4,3,7", "7,70|70", NULL },
                                  { "20", "20,1", NULL },
                                  { NULL, NULL, NULL } },
};
#else
#include "ops/sums.h"

/* Elements [at, at + n) of `values`, widened into `room` if they are stored in bfloat16. */
static const REAL *REAL_(part)(const void *values, int64_t at, int64_t n, bool narrow, REAL *room)
{
    const keel_bf16 *from = values;
    if (!narrow) return (const REAL *)values + at;
    for (int64_t i = 0; i < n; i++) room[i] = (REAL)keel_bf16_wide(from[at + i]);
    return room;
}

static void REAL_(forward)(const keel_call *c)
{
    const dims d = dims_of(c);
    const REAL *x = c->in[0], *w = c->weight[0];
    const REAL *b = c->node->n_weight > 1 ? c->weight[1] : NULL;
    REAL *y = c->out[0];
    for (int64_t i = 0; i < d.places; i++)
        for (int64_t k0 = 0; k0 < d.k; k0 += KEEL_SUMS_BLOCK) {
            const int64_t nk = d.k - k0 < KEEL_SUMS_BLOCK ? d.k - k0 : KEEL_SUMS_BLOCK;
            double acc[KEEL_SUMS_BLOCK] = { 0 };
            if (b) REAL_(add_scaled)(acc, 1, b + k0, nk);
            for (int64_t j = 0; j < d.c; j++)
                REAL_(add_scaled)(acc, x[i * d.c + j], w + j * d.k + k0, nk);
            REAL_(store)(y + i * d.k + k0, acc, nk, false);
        }
}

static void REAL_(backward)(const keel_call *c)
{
    const dims d = dims_of(c);
    const REAL *w = c->weight[0], *dy = c->out_grad[0];
    REAL *dx = c->in_grad[0];
    if (!dx) return;
    for (int64_t i = 0; i < d.places; i++)
        for (int64_t j = 0; j < d.c; j++) {
            const double sum = REAL_(dot)(dy + i * d.k, w + j * d.k, d.k);
            REAL_(store)(dx + i * d.c + j, &sum, 1, c->in_adds[0]);
        }
}

static void REAL_(weights)(const keel_call *c)
{
    const dims d = dims_of(c);
    const REAL *x = c->in[0], *dy = c->out_grad[0];
    REAL *dw = c->weight_grad[0];
    for (int64_t j = 0; dw && j < d.c; j++)
        for (int64_t k0 = 0; k0 < d.k; k0 += KEEL_SUMS_BLOCK) {
            const int64_t nk = d.k - k0 < KEEL_SUMS_BLOCK ? d.k - k0 : KEEL_SUMS_BLOCK;
            double acc[KEEL_SUMS_BLOCK] = { 0 };
            for (int64_t i = 0; i < d.places; i++)
                REAL_(add_scaled)(acc, x[i * d.c + j], dy + i * d.k + k0, nk);
            REAL_(store)(dw + j * d.k + k0, acc, nk, c->weight_adds);
        }
    if (c->node->n_weight > 1 && c->weight_grad[1])
        REAL_(sum_places)(c->weight_grad[1], dy, d.places, d.k, c->weight_adds);
}

/* Rows [first / K, ...) of the kernel, or a part of the bias: the rows of the step are added one
 * after another. */
static void REAL_(weights_tile)(const keel_tile_call *c)
{
    const int64_t n_c = c->node->weight[0].shape.dim[0], n_k = c->node->weight[0].shape.dim[1];
    const int64_t length = c->weight == 0 ? n_k : c->count;
    const bool narrow = c->node->held == KEEL_BFLOAT16;
    REAL *grad = c->grad;
    for (int64_t j = 0; j < c->count / length; j++)
        for (int64_t k0 = 0; k0 < length; k0 += KEEL_SUMS_BLOCK) {
            const int64_t nk = length - k0 < KEEL_SUMS_BLOCK ? length - k0 : KEEL_SUMS_BLOCK;
            const int64_t at = c->weight == 0 ? k0 : c->first + k0;
            double acc[KEEL_SUMS_BLOCK] = { 0 };
            for (int s = 0; s < c->n_span; s++)
                for (int64_t i = 0; i < c->span[s].rows; i++) {
                    REAL room[KEEL_SUMS_BLOCK], x = 1;
                    if (c->weight == 0)
                        x = *REAL_(part)(c->span[s].in, i * n_c + c->first / n_k + j, 1, narrow,
                                         &x);
                    REAL_(add_scaled)
                    (acc, x, REAL_(part)(c->span[s].out_grad, i * n_k + at, nk, narrow, room), nk);
                }
            REAL_(store)(grad + j * length + k0, acc, nk, false);
        }
}
#endif
