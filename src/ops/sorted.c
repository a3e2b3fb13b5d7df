/* The numbers along an axis from the smallest to the largest; NaN comes last. Keras: ops.sort. */
#ifndef REAL
#include "ops/goes.h"
#include "ops/order.h"

#define REAL_FILE "ops/sorted.c"
#include "ops/real.h"

const keel_op keel_op_sorted = {
    .name = "sorted",
    .args_size = sizeof(keel_axis_args),
    .infer = keel_order_infer,
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
    int64_t *from = c->scratch;
    const keel_axis_split a = keel_axis_of(c, &c->node->in[0]);
    for (int64_t o = 0; o < c->rows * a.outer; o++)
        for (int64_t i = 0; i < a.inner; i++) {
            const REAL *x = (const REAL *)c->in[0] + o * a.n * a.inner + i;
            REAL *y = (REAL *)c->out[0] + o * a.n * a.inner + i;
            REAL_(keel_order)(x, a.n, a.inner, from, from + a.n);
            for (int64_t j = 0; j < a.n; j++) y[j * a.inner] = x[from[j] * a.inner];
        }
}

static void REAL_(backward)(const keel_call *c)
{
    int64_t *from = c->scratch;
    if (!c->in_grad[0]) return;
    const keel_axis_split a = keel_axis_of(c, &c->node->in[0]);
    for (int64_t o = 0; o < c->rows * a.outer; o++)
        for (int64_t i = 0; i < a.inner; i++) {
            const int64_t at = o * a.n * a.inner + i;
            const REAL *x = (const REAL *)c->in[0] + at, *dy = (const REAL *)c->out_grad[0] + at;
            REAL *dx = (REAL *)c->in_grad[0] + at;
            REAL_(keel_order)(x, a.n, a.inner, from, from + a.n);
            for (int64_t j = 0; j < a.n; j++) {
                REAL *to = dx + from[j] * a.inner;
                *to = c->in_adds[0] ? *to + dy[j * a.inner] : dy[j * a.inner];
            }
        }
}
#endif
