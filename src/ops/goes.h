/* How ops go along the first dim of a row: see keel_op.goes. */
#ifndef KEEL_OPS_GOES_H
#define KEEL_OPS_GOES_H
#include "ops/args.h"
#include "ops/op.h"

/* Each input goes along: pointwise ops, and those that make a vector of each element. */
static inline keel_going keel_goes_like(const keel_node *n, int k)
{
    return n->in[k].shape.rank > 0 ? KEEL_GOES_ALONG : KEEL_GOES_NOT;
}

/* Broadcasting: an input of one place belongs to all. */
static inline keel_going keel_goes_spread(const keel_node *n, int k)
{
    const keel_shape *in = &n->in[k].shape, *out = &n->out[0].shape;
    if (in->rank == 0 || in->rank != out->rank) return KEEL_GOES_NOT;
    return in->dim[0] == out->dim[0] ? KEEL_GOES_ALONG : KEEL_GOES_WHOLE;
}

/* Ops along one axis, which must be another. */
static inline keel_going keel_goes_axis(const keel_node *n, int k)
{
    const int64_t axis = ((const keel_axis_args *)n->args)->axis, rank = n->in[k].shape.rank;
    return rank > 0 && axis != 0 && axis != -rank ? KEEL_GOES_ALONG : KEEL_GOES_NOT;
}

#endif
