/* x where its mask is above one half, 0 elsewhere. The mask has the first dims of x: [T] beside
 * [T, C]. */
#ifndef REAL
#include "ops/infer.h"

static keel_status infer(keel_node *n)
{
    char x[96], mask[96];
    KEEL_TRY(keel_infer_check(n, 2, 0, 0));
    const keel_shape *a = &n->in[0].shape, *b = &n->in[1].shape;
    bool fits = b->rank <= a->rank;
    for (int d = 0; fits && d < b->rank; d++) fits = a->dim[d] == b->dim[d];
    if (fits) return keel_infer_out(n, a);
    keel_shape_text(x, a);
    keel_shape_text(mask, b);
    return keel_fail(KEEL_ESHAPE, "masked: a mask of %s does not fit values of %s", mask, x);
}

#define REAL_FILE "ops/masked.c"
#include "ops/real.h"

const keel_op keel_op_masked = {
    .name = "masked",
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN,
    .cases = (const keel_case[]){ { "4,5|4", NULL, NULL },
                                  { "3,2,4|3,2", NULL, NULL },
                                  { "6|6", NULL, NULL },
                                  { NULL, NULL, NULL } },
};
#else
static void REAL_(forward)(const keel_call *c)
{
    const int64_t places = c->rows * keel_row_count(&c->node->in[1]);
    const int64_t n = keel_row_count(&c->node->in[0]) / keel_row_count(&c->node->in[1]);
    const REAL *x = c->in[0], *mask = c->in[1];
    REAL *y = c->out[0];
    for (int64_t i = 0; i < places; i++)
        for (int64_t k = 0; k < n; k++) y[i * n + k] = mask[i] > (REAL)0.5 ? x[i * n + k] : 0;
}

static void REAL_(backward)(const keel_call *c)
{
    const int64_t places = c->rows * keel_row_count(&c->node->in[1]);
    const int64_t n = keel_row_count(&c->node->in[0]) / keel_row_count(&c->node->in[1]);
    const REAL *mask = c->in[1], *dy = c->out_grad[0];
    REAL *dx = c->in_grad[0], *dmask = c->in_grad[1];
    for (int64_t i = 0; dx && i < places; i++)
        for (int64_t k = 0; k < n; k++) {
            const REAL g = mask[i] > (REAL)0.5 ? dy[i * n + k] : 0;
            dx[i * n + k] = c->in_adds[0] ? dx[i * n + k] + g : g;
        }
    for (int64_t i = 0; dmask && !c->in_adds[1] && i < places; i++) dmask[i] = 0;
}
#endif
