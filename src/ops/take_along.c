/* The places of an axis that a second value names, each with its own numbers: y[.., j, ..] =
 * x[.., i[.., j, ..], ..]. The other dims of both are equal. A place below 0 counts from the end;
 * beyond the axis it is the nearest one. No gradient flows to the places. Keras:
 * ops.take_along_axis. */
#ifndef REAL
#include "ops/axis.h"
#include <string.h>

static keel_status infer(keel_node *n)
{
    char x_text[96], i_text[96];
    int axis;
    KEEL_TRY(keel_infer_check(n, 2, 0, 0));
    KEEL_TRY(keel_infer_axis(n, ((const keel_axis_args *)n->args)->axis, &axis));
    keel_shape like = n->in[0].shape;
    const keel_shape *at = &n->in[1].shape;
    if (at->rank == like.rank) like.dim[axis] = at->dim[axis];
    if (keel_shape_equal(&like, at)) return keel_infer_out(n, at);
    keel_shape_text(x_text, &n->in[0].shape);
    keel_shape_text(i_text, at);
    return keel_fail(KEEL_ESHAPE, "take_along: places of %s do not fit values of %s", i_text,
                     x_text);
}

#define REAL_FILE "ops/take_along.c"
#include "ops/real.h"

const keel_op keel_op_take_along = {
    .name = "take_along",
    .args_size = sizeof(keel_axis_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN,
    .cases = (const keel_case[]){ { "10|4", NULL, NULL },
                                  { "4,3,5|4,7,5", NULL, "axis 1" },
                                  { "3,2|1,2", NULL, "axis 0" },
                                  { NULL, NULL, NULL } },
    .args_for_case = keel_axis_for_case,
};
#else
static int64_t REAL_(place)(REAL at, int64_t n)
{
    if (!(at > -(REAL)n)) return 0;
    const int64_t i = at < (REAL)n ? (int64_t)at : n - 1;
    return i < 0 ? i + n : i;
}

static void REAL_(forward)(const keel_call *c)
{
    const keel_axis_split a = keel_axis_of(c, &c->node->in[0]);
    const keel_axis_split b = keel_axis_of(c, &c->node->in[1]);
    const REAL *x = c->in[0], *at = c->in[1];
    REAL *y = c->out[0];
    for (int64_t o = 0; o < c->rows * a.outer; o++, x += a.n * a.inner)
        for (int64_t j = 0; j < b.n; j++)
            for (int64_t i = 0; i < a.inner; i++) *y++ = x[REAL_(place)(*at++, a.n) * a.inner + i];
}

static void REAL_(backward)(const keel_call *c)
{
    const keel_axis_split a = keel_axis_of(c, &c->node->in[0]);
    const keel_axis_split b = keel_axis_of(c, &c->node->in[1]);
    const REAL *dy = c->out_grad[0], *at = c->in[1];
    REAL *dx = c->in_grad[0];
    for (int k = 0; k < 2; k++)
        if (c->in_grad[k] && !c->in_adds[k])
            memset(c->in_grad[k], 0,
                   (size_t)(c->rows * keel_row_count(&c->node->in[k])) * sizeof(REAL));
    for (int64_t o = 0; dx && o < c->rows * a.outer; o++, dx += a.n * a.inner)
        for (int64_t j = 0; j < b.n; j++)
            for (int64_t i = 0; i < a.inner; i++)
                dx[REAL_(place)(*at++, a.n) * a.inner + i] += *dy++;
}
#endif
