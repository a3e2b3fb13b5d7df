/* Sums of the places up to each one along an axis. Keras: ops.cumsum. */
#ifndef REAL
#include "ops/axis.h"
#include <math.h>
#include <string.h>

#define REAL_FILE "ops/cumsum.c"
#include "ops/real.h"

const keel_op keel_op_cumsum = {
    .name = "cumsum",
    .args_size = sizeof(keel_axis_args),
    .infer = keel_axis_infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .goes = keel_goes_axis,
    .backward_reads = 0,
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
            double sum = 0;
            for (int64_t j = 0; j < a.n; j++) {
                sum += x[j * a.inner];
                y[j * a.inner] = (REAL)sum;
            }
        }
}

static void REAL_(backward)(const keel_call *c)
{
    if (!c->in_grad[0]) return;
    const keel_axis_split a = keel_axis_of(c, &c->node->in[0]);
    for (int64_t o = 0; o < c->rows * a.outer; o++)
        for (int64_t i = 0; i < a.inner; i++) {
            const REAL *dy = (const REAL *)c->out_grad[0] + o * a.n * a.inner + i;
            REAL *dx = (REAL *)c->in_grad[0] + o * a.n * a.inner + i;
            double sum = 0;
            for (int64_t j = a.n - 1; j >= 0; j--) {
                sum += dy[j * a.inner];
                dx[j * a.inner] = (REAL)(c->in_adds[0] ? dx[j * a.inner] + sum : sum);
            }
        }
}
#endif
