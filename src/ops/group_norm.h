/* The arguments of ops/group_norm.c. */
#ifndef KEEL_OPS_GROUP_NORM_H
#define KEEL_OPS_GROUP_NORM_H
#include "ops/op.h"

typedef struct keel_group_norm_args {
    int64_t groups; /* of neighbouring channels, of the last dim */
    double epsilon;
    bool center, scale; /* is there a beta, a gamma; weights: gamma, beta */
} keel_group_norm_args;

#endif
