/* See ops/average_pool2d.c. */
#include "ops/cuda/_average_pool.h"

namespace
{
pool_shape shape_of(const keel_call *c)
{
    return pool_shape_between(c->node->in[0], c->node->out[0], *cuda_args<keel_pool2d_args>(c),
                              c->rows);
}

template <class T> void forward(const keel_call *c)
{
    average(c, shape_of(c), cuda_out<T>(c), cuda_in<T>(c, 0), false);
}

template <class T> void backward(const keel_call *c)
{
    T *dx = cuda_in_grad<T>(c, 0);
    if (dx) average_back(c, shape_of(c), dx, cuda_out_grad<T>(c), c->in_adds[0]);
}
} // namespace

CUDA_KERNEL(average_pool2d) = { .op = &keel_op_average_pool2d,
                                .name = "cuda",
                                .prepare = cuda_always,
                                .run = { forward<float>, backward<float> },
                                .narrow = { forward<bf16>, backward<bf16> },
                                .half = { forward<f16>, backward<f16> } };
