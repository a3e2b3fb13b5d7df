/* See ops/gelu.c. The tail of the normal distribution is that of erfc, which keeps its digits. */
#include "ops/cuda/_each.h"

namespace
{
#define ROOT      0.79788456080286535588f /* sqrt(2 / pi) */
#define ROOT_HALF 0.70710678118654752440f
#define DENSITY   0.39894228040143267794f /* 1 / sqrt(2 pi) */
#define CUBIC     0.044715f

/* The normal distribution below x, and its density. */
struct normal {
    float below, density;
};

/* SHORT, for narrow values: below -z it is exp(-z^2 / 2) times a polynomial in 1 / (1 + 0.38 z), to
 * 3.5e-5 of the result at any z. */
template <bool SHORT> __device__ __forceinline__ normal normal_of(float x)
{
    if (!SHORT) return { 0.5f * erfcf(-x * ROOT_HALF), expf(-0.5f * x * x) * DENSITY };
    const float t = short_inverse(1 + 0.38f * fabsf(x)), e = short_exp(-0.5f * x * x);
    float r = fmaf(t, -0.0899278192f, 0.188875319f);
    r = fmaf(t, r, 0.0919805759f);
    r = fmaf(t, r, 0.157829241f);
    r = fmaf(t, r, 0.151225159f);
    const float tail = e * (r * t);
    return { x < 0 ? tail : 1 - tail, e * DENSITY };
}

template <bool SHORT> struct erf_gelu {
    static const bool from_out = false;

    static erf_gelu of(const keel_call *)
    {
        return {};
    }
    __device__ float value(float x) const
    {
        return x * normal_of<SHORT>(x).below;
    }
    __device__ float slope(float x) const
    {
        const normal n = normal_of<SHORT>(x);
        return n.below + x * n.density;
    }
};

template <bool SHORT> struct tanh_gelu {
    static const bool from_out = false;

    static tanh_gelu of(const keel_call *)
    {
        return {};
    }
    static __device__ __forceinline__ float half(float x)
    {
        const float by = -2 * ROOT * (x + CUBIC * x * x * x);
        return SHORT ? short_inverse(1 + short_exp(by)) : 1 / (1 + expf(by));
    }
    __device__ float value(float x) const
    {
        return x * half(x);
    }
    __device__ float slope(float x) const
    {
        return half(x) * (1 + x * half(-x) * (2 * ROOT * (1 + 3 * CUBIC * x * x)));
    }
};

bool is_tanh(const keel_call *c)
{
    return cuda_args<keel_gelu_args>(c)->approximate;
}

template <class T> void forward(const keel_call *c)
{
    const bool SHORT = sizeof(T) < sizeof(float);
    is_tanh(c) ? each_forward<tanh_gelu<SHORT>, T>(c) : each_forward<erf_gelu<SHORT>, T>(c);
}

template <class T> void backward(const keel_call *c)
{
    const bool SHORT = sizeof(T) < sizeof(float);
    is_tanh(c) ? each_backward<tanh_gelu<SHORT>, T>(c) : each_backward<erf_gelu<SHORT>, T>(c);
}
} // namespace

CUDA_KERNEL(gelu) = { .op = &keel_op_gelu,
                      .name = "cuda",
                      .prepare = cuda_always,
                      .run = { forward<float>, backward<float> },
                      .narrow = { forward<bf16>, backward<bf16> },
                      .half = { forward<f16>, backward<f16> } };
