/* Ops along an axis whose elements are neighbours in memory: the last one, or one behind which all
 * dims are 1. Their kernels take no other axis. */
#ifndef KEEL_OPS_X86_LAST_AXIS_H
#define KEEL_OPS_X86_LAST_AXIS_H
#include "ops/axis.h"
#include "ops/x86/_vector.h"

static inline keel_axis_split axis_of_node(const keel_node *n)
{
    return keel_axis_of_node(n, &n->out[0]);
}

static inline int64_t last_of(const keel_node *n) /* how long it is */
{
    return axis_of_node(n).n;
}

static inline keel_status last_axis_prepare(keel_prepare *p)
{
    KEEL_TRY(vector_prepare(p));
    return axis_of_node(p->node).inner == 1 ? KEEL_OK : KEEL_EUNSUP;
}

#endif
