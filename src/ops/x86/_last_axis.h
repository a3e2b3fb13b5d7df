/* Ops along the last axis, whose elements are neighbours in memory: their kernels take no other
 * axis. */
#ifndef KEEL_OPS_X86_LAST_AXIS_H
#define KEEL_OPS_X86_LAST_AXIS_H
#include "ops/args.h"
#include "ops/x86/_vector.h"

static inline int64_t last_of(const keel_node *n) /* how long it is */
{
    return n->out[0].shape.dim[n->out[0].shape.rank - 1];
}

static inline keel_status last_axis_prepare(keel_prepare *p)
{
    const int64_t axis = ((const keel_axis_args *)p->node->args)->axis;
    KEEL_TRY(vector_prepare(p));
    return axis == -1 || axis == p->node->out[0].shape.rank - 1 ? KEEL_OK : KEEL_EUNSUP;
}

#endif
