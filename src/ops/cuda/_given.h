/* Numbers that lie with the host, such as constants of a layer: they travel as parameters of
 * launches, some at a time. A captured graph keeps these, and nothing is allocated, copied or
 * waited for. */
#ifndef KEEL_OPS_CUDA_GIVEN_H
#define KEEL_OPS_CUDA_GIVEN_H
#include "ops/cuda/_kernel.h"
#include <type_traits>

/* Parameters of a launch have room for 4096 bytes. The emulator takes several turns of few. */
#ifdef __CUDACC__
static const int GIVEN_BYTES = 3840;
static const int GIVEN_ROWS = 8; /* of a thread, which has one number */
#else
static const int GIVEN_BYTES = 16;
static const int GIVEN_ROWS = 3;
#endif

template <class N> constexpr int GIVEN_SOME = GIVEN_BYTES / (int)sizeof(N);

template <class N> struct given_some {
    N at[GIVEN_SOME<N>];
    int n;
};

/* to: where the first of them goes in the first row; count: of a row */
template <class T, class N>
static __global__ void __launch_bounds__(CUDA_THREADS, 1)
    given_kernel(T *to, const given_some<N> some, int64_t count, int64_t rows, int64_t all)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < all; t += step) {
        int64_t part = t;
        const int64_t i = take(&part, some.n), first = part * GIVEN_ROWS;
        T x;
        if constexpr (std::is_same<T, N>::value)
            x = some.at[i];
        else
            x = to_value<T>(some.at[i]);
        UNROLL
        for (int r = 0; r < GIVEN_ROWS; r++)
            if (first + r < rows) to[(first + r) * count + i] = x;
    }
}

/* The numbers at(0), at(1) ... go into each row. T: double, or a type of values. */
template <class T, class AT>
static void give(const keel_call *c, T *to, int64_t count, int64_t rows, const AT &at)
{
    typedef std::conditional_t<std::is_same<T, double>::value, double, float> N;
    for (int64_t first = 0; first < count; first += GIVEN_SOME<N>) {
        const int64_t left = count - first;
        given_some<N> some = {};
        some.n = (int)(left < GIVEN_SOME<N> ? left : GIVEN_SOME<N>);
        for (int i = 0; i < some.n; i++) some.at[i] = (N)at(first + i);
        const int64_t all = some.n * ((rows + GIVEN_ROWS - 1) / GIVEN_ROWS);
        cuda_launch(c, given_kernel<T, N>, cuda_blocks(all), CUDA_THREADS, 0, to + first, some,
                    count, rows, all);
    }
}

#endif
