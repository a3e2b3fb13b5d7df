/* See ops/conv3d.c and _conv.h. */
#include "ops/cuda/_conv.h"

namespace
{
keel_status prepare(keel_prepare *p)
{
    const keel_conv3d_args *a = static_cast<const keel_conv3d_args *>(p->node->args);
    const int64_t *x = p->node->in[0].shape.dim, *y = p->node->out[0].shape.dim;
    cuda_geometry g = {};
    cuda_geometry_fill(&g, 3, x, y, p->node->weight[0].shape.dim, a->strides, a->dilation, a->pad);
    g.c = x[3], g.k = y[3], g.groups = a->groups;
    return cuda_conv_prepare(p, &g);
}
} // namespace

CUDA_CONV_KERNEL(conv3d);
