/* Softmax along one axis: y = exp(x - max) / sum exp(x - max). dx = y (dy - sum(y dy)). */
#ifndef REAL
#include "ops/derive.h"
#include "ops/axis.h"
#include <math.h>
#include <tgmath.h>

#define REAL_FILE "ops/softmax.c"
#include "ops/real.h"

static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    const int rank = d->node->in[0].shape.rank;
    const int64_t axis = ((const keel_axis_args *)d->node->args)->axis;
    const int at = (int)(axis < 0 ? axis + rank : axis);
    int sum;
    KEEL_TRY(keel_derive_times(d, d->out[0], &sum));
    KEEL_TRY(keel_derive_reduce(d, KEEL_REDUCE_SUM, at, at + 1, sum, &sum));
    KEEL_TRY(keel_derive_two(d, &keel_op_subtract, d->grad, sum, &sum));
    return keel_derive_two(d, &keel_op_multiply, d->out[0], sum, out);
}

const keel_op keel_op_softmax = {
    .name = "softmax",
    KEEL_AXIS_OP,
    .derive = derive,
};
#else
static void REAL_(forward)(const keel_call *c)
{
    const keel_axis_split a = keel_axis_of(c, &c->node->out[0]);
    for (int64_t o = 0; o < c->rows * a.outer; o++)
        for (int64_t i = 0; i < a.inner; i++) {
            const REAL *x = (const REAL *)c->in[0] + o * a.n * a.inner + i;
            REAL *y = (REAL *)c->out[0] + o * a.n * a.inner + i;
            REAL max = x[0];
            double sum = 0;
            for (int64_t j = 1; j < a.n; j++)
                if (x[j * a.inner] > max) max = x[j * a.inner];
            for (int64_t j = 0; j < a.n; j++) sum += y[j * a.inner] = exp(x[j * a.inner] - max);
            for (int64_t j = 0; j < a.n; j++) y[j * a.inner] = (REAL)(y[j * a.inner] / sum);
        }
}

static void REAL_(backward)(const keel_call *c)
{
    const keel_axis_split a = keel_axis_of(c, &c->node->out[0]);
    if (!c->in_grad[0]) return;
    for (int64_t o = 0; o < c->rows * a.outer; o++)
        for (int64_t i = 0; i < a.inner; i++) {
            const int64_t at = o * a.n * a.inner + i;
            const REAL *y = (const REAL *)c->out[0] + at, *dy = (const REAL *)c->out_grad[0] + at;
            REAL *dx = (REAL *)c->in_grad[0] + at;
            double sum = 0;
            for (int64_t j = 0; j < a.n; j++) sum += (double)y[j * a.inner] * dy[j * a.inner];
            for (int64_t j = 0; j < a.n; j++) {
                const double g = y[j * a.inner] * (dy[j * a.inner] - sum);
                dx[j * a.inner] = (REAL)(c->in_adds[0] ? dx[j * a.inner] + g : g);
            }
        }
}
#endif
