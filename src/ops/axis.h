/* Ops that work along one axis: their args, the split of the dims around it, and case texts. */
#ifndef KEEL_OPS_AXIS_H
#define KEEL_OPS_AXIS_H
#include "ops/goes.h"
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

/* infer for an output without the axis. */
static inline keel_status keel_axis_infer_drop(keel_node *n)
{
    int axis;
    keel_shape out = { 0 };
    KEEL_TRY(keel_infer_check(n, 1, 0, 0));
    KEEL_TRY(keel_infer_axis(n, ((const keel_axis_args *)n->args)->axis, &axis));
    for (int d = 0; d < n->in[0].shape.rank; d++)
        if (d != axis) out.dim[out.rank++] = n->in[0].shape.dim[d];
    return keel_infer_out(n, &out);
}

/* The dims of one row of `s` around the op's axis. */
static inline keel_axis_split keel_axis_of_node(const keel_node *n, const keel_spec *s)
{
    const int64_t axis = ((const keel_axis_args *)n->args)->axis;
    return keel_split_at(&s->shape, (int)(axis < 0 ? axis + s->shape.rank : axis));
}

static inline keel_axis_split keel_axis_of(const keel_call *c, const keel_spec *s)
{
    return keel_axis_of_node(c->node, s);
}

static inline void keel_axis_for_case(void *args, const char *text)
{
    keel_axis_args *a = args;
    a->axis = -1;
    keel_case_ints(text, "axis", &a->axis, 1);
}

/* What is the same in ops that make numbers along an axis of numbers along it, and go back by what
 * they made. The passes are those of the file. */
#define KEEL_AXIS_OP                                                                               \
    .costly = true, .args_size = sizeof(keel_axis_args), .infer = keel_axis_infer,                 \
    .forward = REALS(forward), .backward = REALS(backward), .backward_reads = KEEL_READS_OUT,      \
    .goes = keel_goes_axis, .inplace = true, .args_for_case = keel_axis_for_case,                  \
    .cases = (const keel_case[])                                                                   \
    {                                                                                              \
        { "10", NULL, NULL }, { "4,3,5", NULL, "axis 1" }, { "3,2", NULL, "axis 0" },              \
        {                                                                                          \
            NULL, NULL, NULL                                                                       \
        }                                                                                          \
    }

#endif
