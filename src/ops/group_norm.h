/* The arguments of ops/group_norm.c, and how a row is divided. */
#ifndef KEEL_OPS_GROUP_NORM_H
#define KEEL_OPS_GROUP_NORM_H
#include "ops/op.h"

typedef struct keel_group_norm_args {
    int64_t groups; /* of neighbouring channels, of the last dim */
    double epsilon;
    bool center, scale; /* is there a beta, a gamma; weights: gamma, beta */
} keel_group_norm_args;

/* A row is [places, channels]; a group is `width` channels of all places. */
typedef struct keel_group_norm_dims {
    int64_t places, channels, groups, width;
} keel_group_norm_dims;

static inline keel_group_norm_dims keel_group_norm_dims_of(const keel_node *n)
{
    const keel_shape *in = &n->in[0].shape;
    const int64_t channels = in->dim[in->rank - 1];
    const int64_t groups = ((const keel_group_norm_args *)n->args)->groups;
    const keel_group_norm_dims d = { keel_shape_count(in) / channels, channels, groups,
                                     channels / groups };
    return d;
}

#endif
