/* Two values of which a row is places x channels, and each operand has all of that, one value for
 * each channel (a gate on feature maps), for each place, or one for all: what most broadcasting is,
 * once dims that go together are one. See _binary.h. */
#ifndef KEEL_OPS_CUDA_BINARY_GRID_H
#define KEEL_OPS_CUDA_BINARY_GRID_H
#include "ops/cuda/_packs.h"

/* An operand's element of a place and a channel of a row is at row * size + place * of_place +
 * channel * of_channel. */
struct grid_side {
    int64_t size, of_place, of_channel; /* of_channel: 1 or 0 */
    float constant;                     /* if size is 0 */
};

struct binary_grid {
    int64_t rows, places, c, groups; /* groups of a thread's channels */
    grid_side side[2];
};

/* A thread's channels of an operand, as they are in memory; those that do not exist are 0. */
template <bool WIDE, class T>
static __device__ __forceinline__ pack<T, EACH<T>>
grid_load(const grid_side &s, const T *from, int64_t row, int64_t place, int64_t k, int64_t n)
{
    const int N = EACH<T>;
    pack<T, N> v = {};
    if (s.size == 0) return v;
    from += row * s.size + place * s.of_place;
    if (s.of_channel) return load_place<WIDE, N>(from + k, n);
    const T one = *from;
    UNROLL
    for (int e = 0; e < N; e++) v.v[e] = one;
    return v;
}

template <class T> struct grid_args {
    T *out;
    const T *in[2], *dy; /* BACK: dy is multiplied by the slope for operand `which` */
    binary_grid g;
    int which;
    bool adds;
};

template <class T> struct grid_packs {
    pack<T, EACH<T>> a, b, dy;
};

template <bool WIDE, bool BACK, class T>
static __device__ __forceinline__ grid_packs<T> grid_load_all(const grid_args<T> &x, int64_t row,
                                                              int64_t place, int64_t k, int64_t n)
{
    grid_packs<T> v = {};
    v.a = grid_load<WIDE>(x.g.side[0], x.in[0], row, place, k, n);
    v.b = grid_load<WIDE>(x.g.side[1], x.in[1], row, place, k, n);
    if (x.dy) v.dy = load_place<WIDE, EACH<T>>(x.dy + (row * x.g.places + place) * x.g.c + k, n);
    return v;
}

template <class M, bool BACK, class T>
static __device__ __forceinline__ float grid_value(const grid_args<T> &x, const grid_packs<T> &v,
                                                   int e)
{
    const float a = x.g.side[0].size ? to_f(v.a.v[e]) : x.g.side[0].constant;
    const float b = x.g.side[1].size ? to_f(v.b.v[e]) : x.g.side[1].constant;
    if constexpr (BACK)
        return M::slope(x.which, a, b) * to_f(v.dy.v[e]);
    else
        return M::value(a, b);
}

/* Element by element: the output, or the gradient of an operand that has all elements. */
template <class M, class T, bool WIDE, bool BACK>
static __global__ void __launch_bounds__(CUDA_THREADS)
    grid_each_kernel(const grid_args<T> x, int64_t threads)
{
    const int N = EACH<T>;
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < threads; t += step) {
        int64_t place = t;
        const int64_t k = take(&place, x.g.groups) * N, n = x.g.c - k;
        T *to = x.out + place * x.g.c + k;
        int64_t row = place;
        const int64_t of_row = take(&row, x.g.places);
        const grid_packs<T> v = grid_load_all<WIDE, BACK>(x, row, of_row, k, n);
        pack<T, N> old = {};
        float y[N];
        if (x.adds) old = load_place<WIDE, N>(to, n);
        UNROLL
        for (int e = 0; e < N; e++) y[e] = grid_value<M, BACK>(x, v, e);
        if (x.adds) {
            UNROLL
            for (int e = 0; e < N; e++) y[e] += to_f(old.v[e]);
        }
        store_place<WIDE, N>(to, y, n);
    }
}

/* The gradient of an operand with one value for each channel: a block has some channels of a row,
 * and its threads share the places. lanes: threads of a place. */
template <class M, class T, bool WIDE>
static __global__ void __launch_bounds__(CUDA_THREADS, 2)
    grid_channels_kernel(const grid_args<T> x, int lanes, int64_t chunks, int64_t blocks)
{
    const int N = EACH<T>, U = 2, t = (int)threadIdx.x, lines = CUDA_THREADS / lanes;
    SHARED(double, room, EACH<T> *CUDA_THREADS);
    for (int64_t b = blockIdx.x; b < blocks; b += gridDim.x) {
        int64_t row = b;
        const int64_t k = (take(&row, chunks) * lanes + t % lanes) * N, n = x.g.c - k;
        double sum[N] = {};
        for (int64_t p = t / lanes; n > 0 && p < x.g.places; p += U * lines) {
            grid_packs<T> v[U];
            UNROLL
            for (int u = 0; u < U; u++)
                v[u] = grid_load_all<WIDE, true>(
                    x, row, p + u * lines < x.g.places ? p + u * lines : p, k, n);
            UNROLL
            for (int u = 0; u < U; u++) {
                if (p + u * lines >= x.g.places) break;
                UNROLL
                for (int e = 0; e < N; e++) sum[e] += (double)grid_value<M, true>(x, v[u], e);
            }
        }
        add_lines<N>(sum, room, lanes, lines, [&](int e, double all) {
            T *to = x.out + row * x.g.c + k + e;
            if (e < n) *to = to_value<T>((float)(x.adds ? (double)to_f(*to) + all : all));
        });
    }
}

/* The gradient of an operand with one value for `length` places: a warp for each value. */
template <class M, class T, bool WIDE>
static __global__ void __launch_bounds__(CUDA_THREADS)
    grid_places_kernel(const grid_args<T> x, int64_t length, int64_t values)
{
    const int N = EACH<T>, lane = (int)threadIdx.x % GPU_WARP;
    const int64_t step = (int64_t)gridDim.x * (CUDA_THREADS / GPU_WARP);
    const int64_t first = (int64_t)blockIdx.x * (CUDA_THREADS / GPU_WARP) + threadIdx.x / GPU_WARP;
    for (int64_t i = first; i < values; i += step) {
        int64_t row = i * length;
        const int64_t place = take(&row, x.g.places);
        double sum = 0;
        for (int64_t j = lane; j < length * x.g.groups; j += GPU_WARP) {
            int64_t p = j;
            const int64_t k = take(&p, x.g.groups) * N, n = x.g.c - k;
            const grid_packs<T> v = grid_load_all<WIDE, true>(x, row, place + p, k, n);
            for (int e = 0; e < N; e++) sum += e < n ? (double)grid_value<M, true>(x, v, e) : 0;
        }
        sum = warp_fold(sum, gpu_plus());
        if (lane) continue;
        x.out[i] = to_value<T>((float)(x.adds ? (double)to_f(x.out[i]) + sum : sum));
    }
}

/* ---- launched ---------------------------------------------------------------------------------
 */

template <class T> static bool grid_is_wide(const grid_args<T> &x)
{
    bool wide = x.g.c % EACH<T> == 0 && (!x.dy || fits_pack<EACH<T>>(x.dy));
    for (int i = 0; i < 2; i++)
        wide = wide && (!x.g.side[i].of_channel || fits_pack<EACH<T>>(x.in[i]));
    return wide;
}

template <class M, bool BACK, class T>
static void grid_each(const keel_call *c, const grid_args<T> &x)
{
    const int64_t threads = x.g.rows * x.g.places * x.g.groups;
    const bool wide = grid_is_wide(x) && fits_pack<EACH<T>>(x.out);
    cuda_launch(c, wide ? grid_each_kernel<M, T, true, BACK> : grid_each_kernel<M, T, false, BACK>,
                cuda_blocks(threads), CUDA_THREADS, 0, x, threads);
}

template <class M, class T> static void grid_gradient(const keel_call *c, const grid_args<T> &x)
{
    const grid_side &own = x.g.side[x.which];
    const bool wide = grid_is_wide(x);
    if (own.size == x.g.places * x.g.c) return grid_each<M, true>(c, x);
    if (!own.of_channel) {
        const int64_t values = x.g.rows * own.size, warps = CUDA_THREADS / GPU_WARP;
        cuda_launch(c, wide ? grid_places_kernel<M, T, true> : grid_places_kernel<M, T, false>,
                    cuda_blocks((values + warps - 1) / warps * CUDA_THREADS), CUDA_THREADS, 0, x,
                    x.g.places / own.size, values);
        return;
    }
    int lanes = 1;
    while (lanes < GPU_WARP && lanes < x.g.groups) lanes *= 2;
    const int64_t chunks = (x.g.groups + lanes - 1) / lanes, blocks = x.g.rows * chunks;
    cuda_launch(c, wide ? grid_channels_kernel<M, T, true> : grid_channels_kernel<M, T, false>,
                cuda_blocks(blocks * CUDA_THREADS), CUDA_THREADS, 0, x, lanes, chunks, blocks);
}

#endif
