/* Ops that work along one axis: their args, the split of the dims around it, and case texts. */
#ifndef KEEL_OPS_AXIS_H
#define KEEL_OPS_AXIS_H
#include "ops/args.h"
#include "ops/cases.h"
#include "ops/infer.h"

/* infer for an output that is shaped as the only input; refuses an axis that is not there. */
static inline keel_status keel_axis_infer(keel_node *n)
{
    int index;
    KEEL_TRY(keel_infer_like(n));
    return keel_infer_axis(n, ((const keel_axis_args *)n->args)->axis, &index);
}

/* The dims of one row of `s` around the op's axis. */
static inline keel_axis_split keel_axis_of(const keel_call *c, const keel_spec *s)
{
    const int64_t axis = ((const keel_axis_args *)c->node->args)->axis;
    return keel_split_at(&s->shape, (int)(axis < 0 ? axis + s->shape.rank : axis));
}

static inline void keel_axis_for_case(void *args, const char *text)
{
    keel_axis_args *a = args;
    a->axis = -1;
    keel_case_ints(text, "axis", &a->axis, 1);
}

#endif
