/* y = x w, with a weight for each place of the last dim or dims, or one number for all. */
#ifndef REAL
#include "base/clones.h"
#include "ops/derive.h"
#include "ops/infer.h"

static keel_status infer(keel_node *n)
{
    char in[96], weight[96];
    KEEL_TRY(keel_infer_check(n, 1, 1, 1));
    const keel_shape *x = &n->in[0].shape, *w = &n->weight[0].shape;
    const int64_t own = keel_row_count(&n->weight[0]);
    bool fits = w->rank > 0 && w->rank <= x->rank;
    for (int d = 0; fits && d < w->rank; d++) fits = w->dim[d] == x->dim[x->rank - w->rank + d];
    if (own == 1 || fits) {
        n->scratch = own * (int64_t)sizeof(double);
        return keel_infer_out(n, x);
    }
    keel_shape_text(in, x);
    keel_shape_text(weight, w);
    return keel_fail(KEEL_ESHAPE, "scale: a weight of %s does not fit rows of %s", weight, in);
}

#define REAL_FILE "ops/scale.c"
#include "ops/real.h"

static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    return keel_derive_weighted(d, &keel_op_scale, NULL, d->grad, 0, out);
}

const keel_op keel_op_scale = {
    .name = "scale",
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .derive = derive,
    .weights = REALS(weights),
    .weights_reads = KEEL_READS_IN,
    .cases = (const keel_case[]){ { "3,4", "4", NULL },
                                  { "2,3,5", "1", NULL },
                                  { "2,3,5", "3,5", NULL },
                                  { "7", "7", NULL },
                                  { NULL, NULL, NULL } },
};
#else
/* y = w x, or += */
KEEL_CLONES static void REAL_(multiply)(REAL *restrict y, const REAL *restrict x,
                                        const REAL *restrict w, int64_t lines, int64_t n, bool adds)
{
    for (int64_t i = 0; i < lines; i++)
        for (int64_t k = 0; k < n; k++)
            y[i * n + k] = (adds ? y[i * n + k] : 0) + w[k] * x[i * n + k];
}

/* The same with one number. */
KEEL_CLONES static void REAL_(multiply_by)(REAL *restrict y, const REAL *restrict x, REAL w,
                                           int64_t n, bool adds)
{
    for (int64_t k = 0; k < n; k++) y[k] = (adds ? y[k] : 0) + w * x[k];
}

static void REAL_(run)(const keel_call *c, const REAL *x, REAL *y, bool adds)
{
    const REAL *w = c->weight[0];
    const int64_t own = keel_row_count(&c->node->weight[0]);
    const int64_t count = c->rows * keel_row_count(&c->node->in[0]);
    if (own == 1)
        REAL_(multiply_by)(y, x, w[0], count, adds);
    else
        REAL_(multiply)(y, x, w, count / own, own, adds);
}

static void REAL_(forward)(const keel_call *c)
{
    REAL_(run)(c, c->in[0], c->out[0], false);
}

static void REAL_(backward)(const keel_call *c)
{
    if (c->in_grad[0]) REAL_(run)(c, c->out_grad[0], c->in_grad[0], c->in_adds[0]);
}

static void REAL_(weights)(const keel_call *c)
{
    const int64_t own = keel_row_count(&c->node->weight[0]);
    const int64_t count = c->rows * keel_row_count(&c->node->in[0]);
    const REAL *x = c->in[0], *dy = c->out_grad[0];
    REAL *dw = c->weight_grad[0];
    double *sum = c->scratch;
    if (!dw) return;
    for (int64_t k = 0; k < own; k++) sum[k] = 0;
    for (int64_t i = 0; i < count; i += own)
        for (int64_t k = 0; k < own; k++) sum[k] += (double)x[i + k] * dy[i + k];
    for (int64_t k = 0; k < own; k++) dw[k] = (REAL)(sum[k] + (c->weight_adds ? dw[k] : 0));
}
#endif
