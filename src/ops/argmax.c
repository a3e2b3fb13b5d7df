/* The index of the largest element along an axis, or of the first of several; the axis is dropped.
 * As in Keras on all backends, -0 is less than 0. No gradient flows. Keras: ops.argmax. */
#ifndef REAL
#include "ops/axis.h"
#include "ops/places.h"
#include <math.h>
#include <string.h>

static keel_status infer(keel_node *n)
{
    int axis;
    KEEL_TRY(keel_axis_infer_drop(n));
    KEEL_TRY(keel_infer_axis(n, ((const keel_axis_args *)n->args)->axis, &axis));
    return keel_infer_places(n, "argmax", n->in[0].shape.dim[axis]);
}

#define REAL_FILE "ops/argmax.c"
#include "ops/real.h"

const keel_op keel_op_argmax = {
    .name = "argmax",
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
static bool REAL_(above)(REAL a, REAL b)
{
    return a > b || (a == b && a == 0 && !signbit(a) && signbit(b));
}

static void REAL_(forward)(const keel_call *c)
{
    const keel_axis_split a = keel_axis_of(c, &c->node->in[0]);
    for (int64_t o = 0; o < c->rows * a.outer; o++)
        for (int64_t i = 0; i < a.inner; i++) {
            const REAL *x = (const REAL *)c->in[0] + o * a.n * a.inner + i;
            int64_t best = 0;
            for (int64_t j = 1; j < a.n; j++)
                if (REAL_(above)(x[j * a.inner], x[best * a.inner])) best = j;
            ((REAL *)c->out[0])[o * a.inner + i] = (REAL)best;
        }
}

static void REAL_(backward)(const keel_call *c)
{
    REAL *dx = c->in_grad[0];
    if (dx && !c->in_adds[0])
        memset(dx, 0, (size_t)(c->rows * keel_row_count(&c->node->in[0])) * sizeof *dx);
}
#endif
