/* Sparsemax along one axis: the point of the simplex nearest to x, y = max(x - tau, 0) with the tau
 * that makes them sum to 1; Martins and Astudillo 2016, arXiv 1602.02068. Keras: sparsemax.
 *
 * tau is the root of a falling, piecewise linear function: Newton's steps from below (tau = (sum of
 * the x above tau - 1) / how many) end after at most n of them, without sorting or memory. On the
 * support, where y > 0, dx = dy - mean of dy over the support; elsewhere 0.
 *
 * Keras 3.15 differs: it adds up the cumulated sums of the whole support, and so gives zeros as
 * soon as the support has more than one element. The paper's function is meant, and is this one. */
#ifndef REAL
#include "ops/axis.h"
#include <math.h>

#define REAL_FILE "ops/sparsemax.c"
#include "ops/real.h"

const keel_op keel_op_sparsemax = {
    .name = "sparsemax",
    KEEL_AXIS_OP,
};
#else
static double REAL_(tau_of)(const REAL *x, int64_t n, int64_t stride)
{
    double tau = -INFINITY;
    for (int64_t step = 0; step <= n; step++) {
        double sum = 0;
        int64_t above = 0;
        for (int64_t j = 0; j < n; j++)
            if (x[j * stride] > tau) {
                sum += x[j * stride];
                above++;
            }
        const double next = (sum - 1) / (double)above;
        if (!(next > tau)) break;
        tau = next;
    }
    return tau;
}

static void REAL_(forward)(const keel_call *c)
{
    const keel_axis_split a = keel_axis_of(c, &c->node->out[0]);
    for (int64_t o = 0; o < c->rows * a.outer; o++)
        for (int64_t i = 0; i < a.inner; i++) {
            const REAL *x = (const REAL *)c->in[0] + o * a.n * a.inner + i;
            REAL *y = (REAL *)c->out[0] + o * a.n * a.inner + i;
            const double tau = REAL_(tau_of)(x, a.n, a.inner);
            for (int64_t j = 0; j < a.n; j++) {
                const double d = x[j * a.inner] - tau;
                y[j * a.inner] = (REAL)(d < 0 ? 0 : d);
            }
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
            int64_t support = 0;
            for (int64_t j = 0; j < a.n; j++)
                if (y[j * a.inner] > 0) {
                    sum += dy[j * a.inner];
                    support++;
                }
            for (int64_t j = 0; j < a.n; j++) {
                const double g = y[j * a.inner] > 0 ? dy[j * a.inner] - sum / (double)support : 0;
                dx[j * a.inner] = (REAL)(c->in_adds[0] ? dx[j * a.inner] + g : g);
            }
        }
}
#endif
