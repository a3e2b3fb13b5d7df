/* A pixel's three colours. What is chosen among them by a number that is not known is chosen by
 * comparing, since an index would put them into memory. */
#ifndef KEEL_OPS_CUDA_COLOUR_H
#define KEEL_OPS_CUDA_COLOUR_H
#include "ops/cuda/_kernel.h"

struct three {
    float v[3];

    __device__ __forceinline__ float at(int k) const
    {
        return k == 0 ? v[0] : k == 1 ? v[1] : v[2];
    }
    __device__ __forceinline__ void add(int k, float x)
    {
        for (int i = 0; i < 3; i++) v[i] += i == k ? x : 0;
    }
};

struct colour {
    int most, least; /* of the three; of equals the first */
    float v, range;
};

static __device__ __forceinline__ int after(int k, int by)
{
    return k + by < 3 ? k + by : k + by - 3;
}

static __device__ __forceinline__ colour colour_of(const three &x)
{
    colour c = { 0, 0, x.v[0], x.v[0] };
    for (int k = 1; k < 3; k++) {
        if (x.v[k] > c.v) c.most = k, c.v = x.v[k];
        if (x.v[k] < c.range) c.least = k, c.range = x.v[k];
    }
    c.range = c.v - c.range;
    return c;
}

template <class T> static __device__ __forceinline__ three load3(const T *from)
{
    return { { to_f(from[0]), to_f(from[1]), to_f(from[2]) } };
}

template <class T> static __device__ __forceinline__ void store3(T *to, const three &x, bool adds)
{
    for (int k = 0; k < 3; k++) to[k] = to_value<T>(adds ? to_f(to[k]) + x.v[k] : x.v[k]);
}

#endif
