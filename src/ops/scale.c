/* Each channel times a weight of its own: [.., C] and [C] give [.., C]. Keras: ConvNeXt's
 * LayerScale. */
#ifndef REAL
#include "ops/infer.h"

static keel_status infer(keel_node *n)
{
    KEEL_TRY(keel_infer_check(n, 1, 1, 1));
    const keel_shape *in = &n->in[0].shape;
    const keel_shape channels = { .rank = 1, .dim = { in->rank ? in->dim[in->rank - 1] : 1 } };
    KEEL_TRY(keel_infer_weight(n, 0, "gamma", &channels));
    return keel_infer_out(n, in);
}

#define REAL_FILE "ops/scale.c"
#include "ops/real.h"

const keel_op keel_op_scale = {
    .name = "scale",
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .weights = REALS(weights),
    .weights_reads = KEEL_READS_IN,
    .cases = (const keel_case[]){ { "7", "7", NULL },
                                  { "3,4,5", "5", NULL },
                                  { "2,1", "1", NULL },
                                  { NULL, NULL, NULL } },
};
#else
static void REAL_(forward)(const keel_call *c)
{
    const int64_t n = c->node->weight[0].shape.dim[0];
    const int64_t places = c->rows * keel_row_count(&c->node->in[0]) / n;
    const REAL *x = c->in[0], *w = c->weight[0];
    REAL *y = c->out[0];
    for (int64_t i = 0; i < places; i++, x += n, y += n)
        for (int64_t k = 0; k < n; k++) y[k] = x[k] * w[k];
}

static void REAL_(backward)(const keel_call *c)
{
    const int64_t n = c->node->weight[0].shape.dim[0];
    const int64_t places = c->rows * keel_row_count(&c->node->in[0]) / n;
    const REAL *dy = c->out_grad[0], *w = c->weight[0];
    REAL *dx = c->in_grad[0];
    for (int64_t i = 0; dx && i < places; i++, dx += n, dy += n)
        for (int64_t k = 0; k < n; k++) dx[k] = c->in_adds[0] ? dx[k] + dy[k] * w[k] : dy[k] * w[k];
}

static void REAL_(weights)(const keel_call *c)
{
    const int64_t n = c->node->weight[0].shape.dim[0];
    const int64_t places = c->rows * keel_row_count(&c->node->in[0]) / n;
    const REAL *x = c->in[0], *dy = c->out_grad[0];
    REAL *dw = c->weight_grad[0];
    for (int64_t k = 0; dw && k < n; k++) {
        double sum = 0;
        for (int64_t i = 0; i < places; i++) sum += (double)x[i * n + k] * dy[i * n + k];
        dw[k] = (REAL)(c->weight_adds ? dw[k] + sum : sum);
    }
}
#endif
