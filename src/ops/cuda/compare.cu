/* See ops/compare.c. */
#include "ops/cuda/_binary.h"

namespace
{
template <int IS> struct compare_of {
    static __device__ __forceinline__ float value(float a, float b)
    {
        return KEEL_HOLDS(IS, a, b) ? 1.0f : 0.0f;
    }
};

template <class T> void forward(const keel_call *c)
{
    switch (cuda_args<keel_compare_args>(c)->is) {
    case KEEL_EQUAL:
        return binary_forward<compare_of<KEEL_EQUAL>, T>(c);
    case KEEL_NOT_EQUAL:
        return binary_forward<compare_of<KEEL_NOT_EQUAL>, T>(c);
    case KEEL_LESS:
        return binary_forward<compare_of<KEEL_LESS>, T>(c);
    case KEEL_LESS_EQUAL:
        return binary_forward<compare_of<KEEL_LESS_EQUAL>, T>(c);
    case KEEL_GREATER:
        return binary_forward<compare_of<KEEL_GREATER>, T>(c);
    default:
        return binary_forward<compare_of<KEEL_GREATER_EQUAL>, T>(c);
    }
}
} // namespace

CUDA_KERNEL(compare) = { .op = &keel_op_compare,
                         .name = "cuda",
                         .prepare = cuda_always,
                         .run = { forward<float> },
                         .narrow = { forward<bf16> },
                         .half = { forward<f16> } };
