/* See ops/conv2d.c and _conv.h. With as many groups as channels and outputs cuDNN is several times
 * as slow as our kernels for depthwise convolutions, which then run and have no plan. */
#include "ops/cuda/_conv.h"
#include "ops/cuda/_depthwise.h"

namespace
{
keel_status prepare(keel_prepare *p)
{
    const keel_conv2d_args *a = static_cast<const keel_conv2d_args *>(p->node->args);
    const int64_t *x = p->node->in[0].shape.dim, *y = p->node->out[0].shape.dim;
    cuda_geometry g = {};
    cuda_geometry_fill(&g, 2, x, y, p->node->weight[0].shape.dim, a->strides, a->dilation, a->pad);
    g.c = x[2], g.k = y[2], g.groups = a->groups;
    if (g.groups > 1 && g.groups == g.c && g.c == g.k && cuda_asked(p))
        return cuda_depthwise_prepare(p);
    return cuda_conv_prepare(p, &g);
}

void forward(const keel_call *c)
{
    c->plan ? cuda_conv_forward(c) : cuda_depthwise_forward(c);
}

void backward(const keel_call *c)
{
    c->plan ? cuda_conv_backward(c) : cuda_depthwise_backward(c);
}

void weights(const keel_call *c)
{
    c->plan ? cuda_conv_weights(c) : cuda_depthwise_weights(c);
}
} // namespace

CUDA_KERNEL(conv2d) = { .op = &keel_op_conv2d,
                        .name = "cudnn",
                        .vendor = true,
                        .prepare = prepare,
                        .run = { forward, backward, weights },
                        .narrow = { forward, backward, weights },
                        .half = { forward, backward, weights },
                        .release = cuda_conv_release };
