/* The channels of a place that a thread has: as many as 16 bytes hold. A thread has the same
 * channels of several places, and loads those of some places together: a thread waits where a value
 * is used, and with one load at a time an H200 has a quarter of its memory's speed. */
#ifndef KEEL_OPS_CUDA_PACKS_H
#define KEEL_OPS_CUDA_PACKS_H
#include "ops/cuda/_kernel.h"

template <class T> constexpr int EACH = 16 / (int)sizeof(T);

/* WIDE: neighbours are a pack; else `n` of them exist, or fewer than 1. */
template <bool WIDE, int N, class T>
static __device__ __forceinline__ pack<T, N> load_place(const T *from, int64_t n)
{
    pack<T, N> v;
    if constexpr (WIDE) {
        v = load_pack<N>(from);
    } else {
        UNROLL
        for (int e = 0; e < N; e++) v.v[e] = e < n ? from[e] : T();
    }
    return v;
}

/* The channels of U places, which are `at` from `from` on. */
template <bool WIDE, int U, int N, class T>
static __device__ __forceinline__ void load_places(pack<T, N> v[U], const T *from,
                                                   const int64_t at[U], int64_t n)
{
    UNROLL
    for (int u = 0; u < U; u++) v[u] = load_place<WIDE, N>(from + at[u], n);
}

template <bool WIDE, int N, class T>
static __device__ __forceinline__ void store_place(T *to, const float v[N], int64_t n)
{
    if constexpr (WIDE) {
        store_pack<N>(to, v);
    } else {
        UNROLL
        for (int e = 0; e < N; e++)
            if (e < n) to[e] = to_value<T>(v[e]);
    }
}

/* put(e, the sum of mine[e] over the lines of a lane), by one thread of each lane. A block's
 * threads are rows of some `lanes` x `lines`; lanes are neighbours. All of them call it; room: N of
 * each. */
template <int N, class F>
static __device__ __forceinline__ void add_lines(const double mine[N], double *room, int lanes,
                                                 int lines, F put)
{
    const int t = (int)threadIdx.x, line = t / lanes % lines, first = t - line * lanes;
    UNROLL
    for (int e = 0; e < N; e++) room[e * CUDA_THREADS + t] = mine[e];
    __syncthreads();
    for (int e = line; e < N; e += lines) {
        double sum = 0;
        for (int i = 0; i < lines; i++) sum += room[e * CUDA_THREADS + first + i * lanes];
        put(e, sum);
    }
    __syncthreads(); /* room is used again */
}

#endif
