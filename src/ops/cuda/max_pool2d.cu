/* See ops/max_pool2d.c. */
#include "ops/cuda/_max_pool.h"

namespace
{
template <class T, class K> void forward_as(const keel_call *c, const pool_shape &s)
{
    K *taps = c->node->n_saved ? static_cast<K *>(c->saved[0]) : nullptr;
    max_pool(c, s, cuda_out<T>(c), taps, cuda_in<T>(c, 0));
}

template <class T, class K> void backward_as(const keel_call *c, const pool_shape &s)
{
    T *dx = cuda_in_grad<T>(c, 0);
    const K *taps = static_cast<const K *>(c->saved[0]);
    if (dx) max_pool_back(c, s, dx, cuda_out_grad<T>(c), taps, c->in_adds[0]);
}

template <class T> void forward(const keel_call *c)
{
    const keel_pool2d_args &a = *cuda_args<keel_pool2d_args>(c);
    const pool_shape s = pool_shape_between(c->node->in[0], c->node->out[0], a, c->rows);
    max_pool_has_many_taps(a) ? forward_as<T, int32_t>(c, s) : forward_as<T, uint8_t>(c, s);
}

template <class T> void backward(const keel_call *c)
{
    const keel_pool2d_args &a = *cuda_args<keel_pool2d_args>(c);
    const pool_shape s = pool_shape_between(c->node->in[0], c->node->out[0], a, c->rows);
    max_pool_has_many_taps(a) ? backward_as<T, int32_t>(c, s) : backward_as<T, uint8_t>(c, s);
}
} // namespace

CUDA_KERNEL(max_pool2d) = { .op = &keel_op_max_pool2d,
                            .name = "cuda",
                            .prepare = cuda_always,
                            .run = { forward<float>, backward<float> },
                            .narrow = { forward<bf16>, backward<bf16> },
                            .half = { forward<f16>, backward<f16> } };
