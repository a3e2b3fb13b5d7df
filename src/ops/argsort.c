/* Where the numbers along an axis are, from the smallest to the largest. No gradient flows. Keras:
 * ops.argsort. */
#ifndef REAL
#include "ops/goes.h"
#include "ops/order.h"
#include "ops/places.h"

static keel_status infer(keel_node *n)
{
    int axis;
    KEEL_TRY(keel_order_infer(n));
    KEEL_TRY(keel_infer_axis(n, ((const keel_axis_args *)n->args)->axis, &axis));
    return keel_infer_places(n, "argsort", n->in[0].shape.dim[axis]);
}

#define REAL_FILE "ops/argsort.c"
#include "ops/real.h"

const keel_op keel_op_argsort = {
    .name = "argsort",
    .args_size = sizeof(keel_axis_args),
    .infer = infer,
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
    int64_t *from = c->scratch;
    const keel_axis_split a = keel_axis_of(c, &c->node->in[0]);
    for (int64_t o = 0; o < c->rows * a.outer; o++)
        for (int64_t i = 0; i < a.inner; i++) {
            const int64_t at = o * a.n * a.inner + i;
            REAL *y = (REAL *)c->out[0] + at;
            REAL_(keel_order)((const REAL *)c->in[0] + at, a.n, a.inner, from, from + a.n);
            for (int64_t j = 0; j < a.n; j++) y[j * a.inner] = (REAL)from[j];
        }
}

static void REAL_(backward)(const keel_call *c)
{
    REAL *dx = c->in_grad[0];
    if (dx && !c->in_adds[0])
        memset(dx, 0, (size_t)(c->rows * keel_row_count(&c->node->in[0])) * sizeof *dx);
}
#endif
