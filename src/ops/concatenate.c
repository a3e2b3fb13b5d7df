/* Inputs joined along one axis; the other dims are equal. */
#ifndef REAL
#include "ops/axis.h"
#include "ops/derive.h"
#include <string.h>

static keel_status infer(keel_node *n)
{
    char first[96], other[96];
    int axis;
    KEEL_TRY(keel_infer_check(n, -1, 0, 0));
    KEEL_TRY(keel_infer_axis(n, ((const keel_axis_args *)n->args)->axis, &axis));
    keel_shape out = n->in[0].shape;
    for (int i = 1; i < n->n_in; i++) {
        const keel_shape *s = &n->in[i].shape;
        bool fits = s->rank == out.rank;
        for (int d = 0; fits && d < out.rank; d++) fits = d == axis || s->dim[d] == out.dim[d];
        if (!fits || s->dim[axis] > INT64_MAX - out.dim[axis]) {
            keel_shape_text(first, &n->in[0].shape);
            keel_shape_text(other, s);
            return keel_fail(KEEL_ESHAPE,
                             "concatenate: input 0 is %s and input %d is %s; only axis %d may "
                             "differ",
                             first, i, other, axis);
        }
        out.dim[axis] += s->dim[axis];
    }
    return keel_infer_out(n, &out);
}

#define REAL_FILE "ops/concatenate.c"
#include "ops/real.h"

static keel_status derive(const keel_derivation *d, int k, int *out)
{
    keel_slice_args part = keel_slice_all(&d->node->in[k].shape);
    int axis;
    KEEL_TRY(keel_infer_axis(d->node, ((const keel_axis_args *)d->node->args)->axis, &axis));
    for (int i = 0; i < k; i++) part.begin[axis] += d->node->in[i].shape.dim[axis];
    return keel_derive_one(d, &keel_op_slice, &part, d->grad, out);
}

const keel_op keel_op_concatenate = {
    .name = "concatenate",
    .args_size = sizeof(keel_axis_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .goes = keel_goes_axis,
    .derive = derive,
    .cases = (const keel_case[]){ { "4,5,3|4,5,1", NULL, NULL },
                                  { "2,3|1,3|4,3", NULL, "axis 0" },
                                  { "2,1,2|2,3,2", NULL, "axis -2" },
                                  { "5", NULL, NULL },
                                  { NULL, NULL, NULL } },
    .args_for_case = keel_axis_for_case,
};
#else
static void REAL_(forward)(const keel_call *c)
{
    const keel_axis_split whole = keel_axis_of(c, &c->node->out[0]);
    const int64_t stride = whole.n * whole.inner;
    REAL *y = c->out[0];
    for (int k = 0; k < c->node->n_in; k++) {
        const keel_axis_split part = keel_axis_of(c, &c->node->in[k]);
        const int64_t piece = part.n * part.inner;
        const REAL *x = c->in[k];
        for (int64_t o = 0; o < c->rows * whole.outer; o++)
            memcpy(y + o * stride, x + o * piece, (size_t)piece * sizeof(REAL));
        y += piece;
    }
}

static void REAL_(backward)(const keel_call *c)
{
    const keel_axis_split whole = keel_axis_of(c, &c->node->out[0]);
    const int64_t stride = whole.n * whole.inner;
    const REAL *dy = c->out_grad[0];
    for (int k = 0; k < c->node->n_in; k++) {
        const keel_axis_split part = keel_axis_of(c, &c->node->in[k]);
        const int64_t piece = part.n * part.inner;
        REAL *dx = c->in_grad[k];
        for (int64_t o = 0; dx && o < c->rows * whole.outer; o++)
            for (int64_t i = 0; i < piece; i++)
                dx[o * piece + i] =
                    c->in_adds[k] ? dx[o * piece + i] + dy[o * stride + i] : dy[o * stride + i];
        dy += piece;
    }
}
#endif
