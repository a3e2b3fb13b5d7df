/* Products of the places up to each one along an axis. Keras: ops.cumprod. */
#ifndef REAL
#include "ops/axis.h"

static keel_status infer(keel_node *n)
{
    int axis;
    KEEL_TRY(keel_axis_infer(n));
    KEEL_TRY(keel_infer_axis(n, ((const keel_axis_args *)n->args)->axis, &axis));
    if (n->backward) n->scratch = (int64_t)sizeof(double) * n->in[0].shape.dim[axis];
    return KEEL_OK;
}

#define REAL_FILE "ops/cumprod.c"
#include "ops/real.h"

const keel_op keel_op_cumprod = {
    .name = "cumprod",
    .args_size = sizeof(keel_axis_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .goes = keel_goes_axis,
    .backward_reads = KEEL_READS_IN,
    .cases = (const keel_case[]){ { "10", NULL, NULL },
                                  { "4,3,5", NULL, "axis 1" },
                                  { "3,2", NULL, "axis 0" },
                                  { NULL, NULL, NULL } },
    .args_for_case = keel_axis_for_case,
};
#else
static void REAL_(forward)(const keel_call *c)
{
    const keel_axis_split a = keel_axis_of(c, &c->node->in[0]);
    for (int64_t o = 0; o < c->rows * a.outer; o++)
        for (int64_t i = 0; i < a.inner; i++) {
            const REAL *x = (const REAL *)c->in[0] + o * a.n * a.inner + i;
            REAL *y = (REAL *)c->out[0] + o * a.n * a.inner + i;
            double product = 1;
            for (int64_t j = 0; j < a.n; j++) {
                product *= x[j * a.inner];
                y[j * a.inner] = (REAL)product;
            }
        }
}

/* dx[j] is the product of what is before j, times s[j], the sum over k >= j of dy[k] and the
 * factors between j and k. s[j] = dy[j] + x[j + 1] s[j + 1]: nothing is divided, so a factor may be
 * 0. */
static void REAL_(backward)(const keel_call *c)
{
    double *s = c->scratch;
    if (!c->in_grad[0]) return;
    const keel_axis_split a = keel_axis_of(c, &c->node->in[0]);
    for (int64_t o = 0; o < c->rows * a.outer; o++)
        for (int64_t i = 0; i < a.inner; i++) {
            const int64_t at = o * a.n * a.inner + i;
            const REAL *x = (const REAL *)c->in[0] + at, *dy = (const REAL *)c->out_grad[0] + at;
            REAL *dx = (REAL *)c->in_grad[0] + at;
            double before = 1;
            for (int64_t j = a.n - 1; j >= 0; j--)
                s[j] = dy[j * a.inner] + (j + 1 < a.n ? x[(j + 1) * a.inner] * s[j + 1] : 0);
            for (int64_t j = 0; j < a.n; j++) {
                const double g = before * s[j];
                dx[j * a.inner] = (REAL)(c->in_adds[0] ? dx[j * a.inner] + g : g);
                before *= x[j * a.inner];
            }
        }
}
#endif
