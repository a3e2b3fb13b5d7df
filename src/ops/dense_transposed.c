/* A product with a transposed table: y = x W^T on the last axis; x is [B, ..., D], W [V, D].
 * dx = dy W; dW = dy^T x, over all places of all rows. Keras: ReversibleEmbedding called with
 * reverse=True. */
#ifndef REAL
#include "ops/derive.h"
#include "ops/infer.h"

static keel_status infer(keel_node *n)
{
    KEEL_TRY(keel_infer_check(n, 1, 1, 1));
    keel_shape out = n->in[0].shape;
    const keel_shape *w = &n->weight[0].shape;
    char text[96];
    keel_shape_text(text, w);
    if (w->rank != 2)
        return keel_fail(KEEL_ESHAPE, "dense_transposed: the table is %s; needs two dims", text);
    if (out.rank < 1 || out.dim[out.rank - 1] != w->dim[1])
        return keel_fail(KEEL_ESHAPE,
                         "dense_transposed: the last axis of the input must be that of the "
                         "table, which is %s",
                         text);
    out.dim[out.rank - 1] = w->dim[0];
    return keel_infer_out(n, &out);
}

typedef struct dims { /* y[places, v] = x[places, d] W[v, d]^T */
    int64_t places, v, d;
} dims;

static dims dims_of(const keel_call *c)
{
    const keel_shape *w = &c->node->weight[0].shape;
    return (dims){ c->rows * (keel_row_count(&c->node->in[0]) / w->dim[1]), w->dim[0], w->dim[1] };
}

static double flops(const keel_node *n)
{
    return 2.0 * (double)keel_row_count(&n->out[0]) * (double)n->weight[0].shape.dim[1];
}

#define REAL_FILE "ops/dense_transposed.c"
#include "ops/real.h"

static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    return keel_derive_weighted(d, &keel_op_dense, NULL, d->grad, 0, out);
}

const keel_op keel_op_dense_transposed = {
    .name = "dense_transposed",
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .derive = derive,
    .weights = REALS(weights),
    .weights_reads = KEEL_READS_IN,
    .flops = flops,
    .cases = (const keel_case[]){ { "5", "3,5", NULL },
                                  { "4,3,7", "70,7", NULL },
                                  { "2,20", "1,20", NULL },
                                  { NULL, NULL, NULL } },
};
#else
#include "ops/sums.h"

static void REAL_(forward)(const keel_call *c)
{
    const dims d = dims_of(c);
    const REAL *x = c->in[0], *w = c->weight[0];
    REAL *y = c->out[0];
    for (int64_t i = 0; i < d.places; i++)
        for (int64_t v = 0; v < d.v; v++)
            y[i * d.v + v] = (REAL)REAL_(dot)(x + i * d.d, w + v * d.d, d.d);
}

static void REAL_(backward)(const keel_call *c)
{
    const dims d = dims_of(c);
    const REAL *w = c->weight[0], *dy = c->out_grad[0];
    REAL *dx = c->in_grad[0];
    for (int64_t i = 0; dx && i < d.places; i++)
        for (int64_t k0 = 0; k0 < d.d; k0 += KEEL_SUMS_BLOCK) {
            const int64_t nk = d.d - k0 < KEEL_SUMS_BLOCK ? d.d - k0 : KEEL_SUMS_BLOCK;
            double acc[KEEL_SUMS_BLOCK] = { 0 };
            for (int64_t v = 0; v < d.v; v++)
                REAL_(add_scaled)(acc, dy[i * d.v + v], w + v * d.d + k0, nk);
            REAL_(store)(dx + i * d.d + k0, acc, nk, c->in_adds[0]);
        }
}

static void REAL_(weights)(const keel_call *c)
{
    const dims d = dims_of(c);
    const REAL *x = c->in[0], *dy = c->out_grad[0];
    REAL *dw = c->weight_grad[0];
    for (int64_t v = 0; dw && v < d.v; v++)
        for (int64_t k0 = 0; k0 < d.d; k0 += KEEL_SUMS_BLOCK) {
            const int64_t nk = d.d - k0 < KEEL_SUMS_BLOCK ? d.d - k0 : KEEL_SUMS_BLOCK;
            double acc[KEEL_SUMS_BLOCK] = { 0 };
            for (int64_t i = 0; i < d.places; i++)
                REAL_(add_scaled)(acc, dy[i * d.v + v], x + i * d.d + k0, nk);
            REAL_(store)(dw + v * d.d + k0, acc, nk, c->weight_adds);
        }
}
#endif
