/* See ops/whole_numbers.c. Divisors are found by halves and differences, since a GPU has no
 * division of 64 bits. */
#include "ops/cuda/_binary.h"
extern "C" {
#include "ops/whole_numbers.h"
}

namespace
{
__device__ __forceinline__ int64_t whole(float x)
{
    if (!(x > -0x1p63f)) return x != x ? 0 : INT64_MIN;
    return x < 0x1p63f ? (int64_t)x : INT64_MAX;
}

__device__ __forceinline__ uint64_t size_of(int64_t x)
{
    return x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
}

/* Twos that both have are counted; others do not matter. What remains of two odd numbers is their
 * difference, halved until it is odd. */
__device__ __forceinline__ uint64_t divisor(uint64_t a, uint64_t b)
{
    int twos = 0;
    if (a == 0 || b == 0) return a | b;
    for (; ((a | b) & 1) == 0; twos++) a >>= 1, b >>= 1;
    while ((a & 1) == 0) a >>= 1;
    while (b) {
        while ((b & 1) == 0) b >>= 1;
        const uint64_t least = a < b ? a : b;
        b = a < b ? b - a : a - b;
        a = least;
    }
    return a << twos;
}

__device__ __forceinline__ double multiple(uint64_t a, uint64_t b)
{
    const uint64_t d = divisor(a, b);
    int64_t times = (int64_t)a;
    if (d == 0) return 0;
    take(&times, (int64_t)d);
    return (double)(uint64_t)times * (double)b;
}

template <int HOW> struct whole_of {
    static __device__ __forceinline__ float value(float x, float y)
    {
        const int64_t a = whole(x), b = whole(y), by = b < 0 ? 0 : b > 63 ? 63 : b;
        if (HOW == KEEL_BITS_AND) return (float)(double)(a & b);
        if (HOW == KEEL_BITS_OR) return (float)(double)(a | b);
        if (HOW == KEEL_BITS_XOR) return (float)(double)(a ^ b);
        if (HOW == KEEL_SHIFT_LEFT) return (float)(double)(int64_t)((uint64_t)a << by);
        if (HOW == KEEL_SHIFT_RIGHT) return (float)(double)(a < 0 ? ~(~a >> by) : a >> by);
        if (HOW == KEEL_GREATEST_DIVISOR) return (float)(double)divisor(size_of(a), size_of(b));
        return (float)multiple(size_of(a), size_of(b));
    }
};

template <class T> void forward(const keel_call *c)
{
    switch (cuda_args<keel_whole_args>(c)->how) {
    case KEEL_BITS_AND:
        return binary_forward<whole_of<KEEL_BITS_AND>, T>(c);
    case KEEL_BITS_OR:
        return binary_forward<whole_of<KEEL_BITS_OR>, T>(c);
    case KEEL_BITS_XOR:
        return binary_forward<whole_of<KEEL_BITS_XOR>, T>(c);
    case KEEL_SHIFT_LEFT:
        return binary_forward<whole_of<KEEL_SHIFT_LEFT>, T>(c);
    case KEEL_SHIFT_RIGHT:
        return binary_forward<whole_of<KEEL_SHIFT_RIGHT>, T>(c);
    case KEEL_GREATEST_DIVISOR:
        return binary_forward<whole_of<KEEL_GREATEST_DIVISOR>, T>(c);
    default:
        return binary_forward<whole_of<KEEL_LEAST_MULTIPLE>, T>(c);
    }
}
} // namespace

CUDA_KERNEL(whole_numbers) = { .op = &keel_op_whole_numbers,
                               .name = "cuda",
                               .prepare = cuda_always,
                               .run = { forward<float> },
                               .narrow = { forward<bf16> },
                               .half = { forward<f16> } };
