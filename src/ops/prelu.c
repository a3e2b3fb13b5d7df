/* y = x where x > 0, else alpha x; alpha has the dims of a row, or 1 in shared dims. Keras: PReLU,
 * whose gradients at 0 are 0. */
#ifndef REAL
#include "base/clones.h"
#include "ops/derive.h"
#include "ops/infer.h"

static keel_status infer(keel_node *n)
{
    char in[96], alpha[96];
    KEEL_TRY(keel_infer_check(n, 1, 1, 1));
    const keel_shape *x = &n->in[0].shape, *a = &n->weight[0].shape;
    keel_shape all = *x;
    if (keel_spread_over(&all, a) && keel_shape_equal(&all, x)) {
        n->scratch = 8 * keel_row_count(&n->weight[0]);
        return keel_infer_out(n, x);
    }
    keel_shape_text(in, x);
    keel_shape_text(alpha, a);
    return keel_fail(KEEL_ESHAPE, "prelu: alpha of %s does not fit rows of %s", alpha, in);
}

/* How many neighbours of a row have neighbours in alpha: the dims after its last dim of 1, or one
 * if other dims come before it. */
static int64_t run_of(const keel_node *n)
{
    const keel_shape *x = &n->in[0].shape, *a = &n->weight[0].shape;
    int64_t run = 1;
    for (int d = x->rank - 1; d >= 0 && a->dim[d] == x->dim[d]; d--) run *= x->dim[d];
    return run;
}

static const char *alpha_at(const keel_call *c, int64_t i, size_t size)
{
    const keel_node *n = c->node;
    const int64_t at = keel_spread_index(&n->in[0].shape, &n->weight[0].shape, i);
    return (const char *)c->weight[0] + (size_t)at * size;
}

#define REAL_FILE "ops/prelu.c"
#include "ops/real.h"

/* Of places of -1, the op makes -alpha. */
static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    int above, below, alpha;
    KEEL_TRY(keel_derive_compare(d, d->in[0], KEEL_GREATER, 0, &above));
    KEEL_TRY(keel_derive_compare(d, d->in[0], KEEL_LESS, 0, &below));
    KEEL_TRY(keel_derive_choice(d, -1, -1, &alpha));
    KEEL_TRY(keel_derive_weighted(d, &keel_op_prelu, NULL, alpha, 0, &alpha));
    KEEL_TRY(keel_derive_two(d, &keel_op_multiply, alpha, below, &alpha));
    KEEL_TRY(keel_derive_two(d, &keel_op_subtract, above, alpha, &above));
    return keel_derive_times(d, above, out);
}

const keel_op keel_op_prelu = {
    .name = "prelu",
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .derive = derive,
    .backward_reads = KEEL_READS_IN,
    .weights = REALS(weights),
    .weights_reads = KEEL_READS_IN,
    .cases = (const keel_case[]){ { "7", "7", NULL },
                                  { "3,4,5", "1,1,5", NULL },
                                  { "3,4,5", "3,1,5", NULL },
                                  { "2,6", "2,1", NULL },
                                  { NULL, NULL, NULL } },
};
#else
KEEL_CLONES static void REAL_(rectify)(REAL *restrict y, const REAL *restrict x,
                                       const REAL *restrict alpha, int64_t n)
{
    for (int64_t k = 0; k < n; k++) y[k] = x[k] > 0 ? x[k] : alpha[k] * x[k];
}

KEEL_CLONES static void REAL_(slope)(REAL *restrict dx, const REAL *restrict dy,
                                     const REAL *restrict x, const REAL *restrict alpha, int64_t n,
                                     bool adds)
{
    for (int64_t k = 0; k < n; k++) {
        const REAL g = x[k] > 0 ? dy[k] : x[k] < 0 ? alpha[k] * dy[k] : 0;
        dx[k] = adds ? dx[k] + g : g;
    }
}

KEEL_CLONES static void REAL_(add_below)(double *restrict sum, const REAL *restrict dy,
                                         const REAL *restrict x, int64_t n)
{
    for (int64_t k = 0; k < n; k++) sum[k] += x[k] < 0 ? (double)dy[k] * x[k] : 0;
}

static void REAL_(forward)(const keel_call *c)
{
    const int64_t count = keel_row_count(&c->node->out[0]), run = run_of(c->node);
    const REAL *x = c->in[0];
    REAL *y = c->out[0];
    for (int64_t row = 0; row < c->rows; row++)
        for (int64_t i = 0; i < count; i += run, x += run, y += run) REAL_(rectify)
    (y, x, (const REAL *)alpha_at(c, i, sizeof *x), run);
}

static void REAL_(backward)(const keel_call *c)
{
    const int64_t count = keel_row_count(&c->node->out[0]), run = run_of(c->node);
    const REAL *x = c->in[0], *dy = c->out_grad[0];
    REAL *dx = c->in_grad[0];
    for (int64_t row = 0; dx && row < c->rows; row++)
        for (int64_t i = 0; i < count; i += run, x += run, dy += run, dx += run) REAL_(slope)
    (dx, dy, x, (const REAL *)alpha_at(c, i, sizeof *x), run, c->in_adds[0]);
}

static void REAL_(weights)(const keel_call *c)
{
    const keel_node *n = c->node;
    const int64_t count = keel_row_count(&n->out[0]), run = run_of(n);
    const int64_t own = keel_row_count(&n->weight[0]);
    const REAL *x = c->in[0], *dy = c->out_grad[0];
    REAL *da = c->weight_grad[0];
    double *sum = c->scratch;
    if (!da) return;
    for (int64_t k = 0; k < own; k++) sum[k] = 0;
    for (int64_t row = 0; row < c->rows; row++)
        for (int64_t i = 0; i < count; i += run, x += run, dy += run) REAL_(add_below)
    (sum + keel_spread_index(&n->in[0].shape, &n->weight[0].shape, i), dy, x, run);
    for (int64_t k = 0; k < own; k++) da[k] = (REAL)sum[k] + (c->weight_adds ? da[k] : 0);
}
#endif
