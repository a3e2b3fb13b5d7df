/* The places of an axis that a second value names, each with its own numbers: y[.., j, ..] =
 * x[.., i[.., j, ..], ..]. The other dims of both are equal. A place below 0 counts from the end;
 * beyond the axis it is the nearest one. No gradient flows to the places. Keras:
 * ops.take_along_axis. */
#ifndef REAL
#include "ops/axis.h"
#include "ops/derive.h"
#include "ops/one_hot.h"
#include "ops/rounded.h"
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

/* The places as numbers from 0 to n - 1. */
static keel_status derive_places(const keel_derivation *d, int64_t n, int *out)
{
    const keel_rounded_args whole = { KEEL_TRUNC };
    int place, below;
    KEEL_TRY(keel_derive_one(d, &keel_op_rounded, &whole, d->in[1], &place));
    KEEL_TRY(keel_derive_compare(d, place, KEEL_LESS, 0, &below));
    KEEL_TRY(keel_derive_with(d, &keel_op_multiply, below, (double)n, &below));
    KEEL_TRY(keel_derive_two(d, &keel_op_plus, place, below, out));
    KEEL_TRY(keel_derive_with(d, &keel_op_maximum, *out, 0, out));
    return keel_derive_with(d, &keel_op_minimum, *out, (double)(n - 1), out);
}

/* Each number of the output goes to its place in a vector along a new last dim; these are added up
 * along the axis, in whose place the last dim comes. */
static keel_status derive(const keel_derivation *d, int k, int *out)
{
    int axis, hot;
    keel_shape shape = d->node->out[0].shape;
    if (k != 0) return keel_fail(KEEL_EUNSUP, "take_along: no gradient flows to places");
    KEEL_TRY(keel_infer_axis(d->node, ((const keel_axis_args *)d->node->args)->axis, &axis));
    const keel_one_hot_args places = { d->node->in[0].shape.dim[axis] };
    const int rank = shape.rank;
    if (rank == KEEL_RANK_MAX)
        return keel_fail(KEEL_EUNSUP, "take_along: a gradient of %d dims", KEEL_RANK_MAX + 1);
    KEEL_TRY(derive_places(d, places.n, &hot));
    KEEL_TRY(keel_derive_one(d, &keel_op_one_hot, &places, hot, &hot));
    shape.dim[shape.rank++] = 1;
    KEEL_TRY(keel_derive_reshape(d, d->grad, &shape, out));
    KEEL_TRY(keel_derive_two(d, &keel_op_multiply, *out, hot, out));
    KEEL_TRY(keel_derive_reduce(d, KEEL_REDUCE_SUM, axis, axis + 1, *out, out));
    keel_permute_args turned = { 0 };
    shape = (keel_shape){ 0 };
    for (int i = 0; i < rank; i++)
        if (i != axis) shape.dim[shape.rank++] = d->node->out[0].shape.dim[i];
    shape.dim[shape.rank++] = places.n;
    KEEL_TRY(keel_derive_reshape(d, *out, &shape, out));
    if (axis == rank - 1) return KEEL_OK;
    for (int i = 0; i < rank; i++) turned.from[i] = i < axis ? i : i == axis ? rank - 1 : i - 1;
    return keel_derive_one(d, &keel_op_permute, &turned, *out, out);
}

const keel_op keel_op_take_along = {
    .name = "take_along",
    .args_size = sizeof(keel_axis_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN,
    .derive = derive,
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
