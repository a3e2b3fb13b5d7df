/* See ops/rescaling.c. */
#include "ops/cuda/_each.h"

namespace
{
struct rescaled {
    float scale, offset;
    __device__ __forceinline__ float operator()(const float *x) const
    {
        return x[0] * scale + offset;
    }
};

template <class T> void forward(const keel_call *c)
{
    const keel_rescaling_args *a = cuda_args<keel_rescaling_args>(c);
    each<1, T>(c, cuda_out<T>(c), false, cuda_count(c), { cuda_in<T>(c, 0) },
               rescaled{ (float)a->scale, (float)a->offset });
}

template <class T> void backward(const keel_call *c)
{
    const keel_rescaling_args *a = cuda_args<keel_rescaling_args>(c);
    if (c->in_grad[0])
        each<1, T>(c, cuda_in_grad<T>(c, 0), c->in_adds[0], cuda_count(c), { cuda_out_grad<T>(c) },
                   rescaled{ (float)a->scale, 0 });
}
} // namespace

CUDA_KERNEL(rescaling) = { .op = &keel_op_rescaling,
                           .name = "cuda",
                           .prepare = cuda_always,
                           .run = { forward<float>, backward<float> },
                           .narrow = { forward<bf16>, backward<bf16> },
                           .half = { forward<f16>, backward<f16> } };
