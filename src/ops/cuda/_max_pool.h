/* Maxima over windows of an image, and the tap that won in each of them: see ops/max_pool2d.c. What
 * a thread loads for some taps or windows is under way together: see _packs.h. */
#ifndef KEEL_OPS_CUDA_MAX_POOL_H
#define KEEL_OPS_CUDA_MAX_POOL_H
#include "ops/cuda/_packs.h"
#include "ops/cuda/_pool.h"

/* K: uint8_t or int32_t, the tap that won. */
static const int FOUR = 4;    /* channels of a thread */
static const int TILE = 4;    /* its pixels on the way back, which mostly are in the same windows */
static const int AT_ONCE = 4; /* taps, or windows */
static const int NOBODY = -1; /* the tap of a window in which none won */

/* Goes through the taps of a window. */
struct max_tap {
    int64_t i, j;

    __device__ __forceinline__ void next(const pool_shape &s)
    {
        if (++j == s.w.size) i++, j = 0;
    }
};

/* y and the tap that won are those of the greatest; a NaN stays. */
static __device__ __forceinline__ void max_compare(float best[FOUR], int won[FOUR],
                                                   const float p[FOUR], int number, bool first)
{
    UNROLL
    for (int e = 0; e < FOUR; e++) {
        const bool wins = first || p[e] > best[e] || p[e] != p[e];
        best[e] = wins ? p[e] : best[e];
        won[e] = wins ? number : won[e];
    }
}

/* The greatest pixel of each of some channels, and the tap where it is, over the window of a place;
 * image: those channels of the row's first pixel, of which `n` exist. */
template <bool WIDE, class T>
static __device__ __forceinline__ void max_of_window(float best[FOUR], int won[FOUR],
                                                     const T *image, const pool_shape &s,
                                                     const pool_place &at, int64_t n)
{
    const int64_t h = s.h.first(at.h), w = s.w.first(at.w);
    bool any = false;
    max_tap next = { 0, 0 };
    UNROLL
    for (int e = 0; e < FOUR; e++) best[e] = -INFINITY, won[e] = NOBODY;
    for (int number = 0; next.i < s.h.size; number += AT_ONCE) {
        pack<T, FOUR> v[AT_ONCE] = {};
        bool there[AT_ONCE];
        UNROLL
        for (int u = 0; u < AT_ONCE; u++, next.next(s)) {
            const int64_t i = h + next.i, j = w + next.j;
            there[u] = next.i < s.h.size && i >= 0 && i < s.h.in && j >= 0 && j < s.w.in;
            if (there[u]) v[u] = load_place<WIDE, FOUR>(image + (i * s.w.in + j) * s.c, n);
        }
        UNROLL
        for (int u = 0; u < AT_ONCE; u++) {
            float p[FOUR];
            if (!there[u]) continue;
            unpack<FOUR>(p, v[u]);
            max_compare(best, won, p, number + u, !any);
            any = true;
        }
    }
    UNROLL
    for (int e = 0; e < FOUR; e++) {
        const bool cut = s.relu && best[e] <= 0;
        best[e] = cut ? 0 : best[e];
        won[e] = cut ? NOBODY : won[e];
    }
}

/* y, taps: NULL if not wanted */
template <class T, class K, bool WIDE>
static __global__ void __launch_bounds__(CUDA_THREADS, 1)
    max_kernel(T *y, K *taps, const T *x, const pool_shape s, int64_t all)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < all; t += step) {
        const pool_place at(s, t, s.h.out, s.w.out);
        const int64_t n = s.c - at.channel;
        const int64_t out = ((at.row * s.h.out + at.h) * s.w.out + at.w) * s.c + at.channel;
        float best[FOUR];
        int won[FOUR];
        max_of_window<WIDE>(best, won, x + at.row * s.h.in * s.w.in * s.c + at.channel, s, at, n);
        if (y) store_place<WIDE, FOUR>(y + out, best, n);
        if (!taps) continue;
        pack<K, FOUR> saved;
        UNROLL
        for (int e = 0; e < FOUR; e++) saved.v[e] = (K)won[e];
        if constexpr (WIDE) {
            gpu_aligned(taps + out, sizeof saved);
            *reinterpret_cast<pack<K, FOUR> *>(taps + out) = saved;
        } else {
            for (int e = 0; e < FOUR && e < n; e++) taps[out + e] = saved.v[e];
        }
    }
}

template <class T, class K, bool WIDE>
static __global__ void __launch_bounds__(CUDA_THREADS, 1)
    max_back_kernel(T *dx, const T *dy, const K *taps, const pool_shape s, int64_t tiles,
                    int64_t all, bool adds)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < all; t += step) {
        const pool_place at(s, t, s.h.in, tiles);
        const int64_t n = s.c - at.channel, w0 = TILE * at.w, left = s.w.in - w0;
        const int64_t row = at.row * s.h.out * s.w.out * s.c + at.channel;
        T *to = dx + ((at.row * s.h.in + at.h) * s.w.in + w0) * s.c + at.channel;
        float sum[TILE][FOUR] = {};
        for (int p = 0; p < TILE; p++)
            if (adds && p < left) unpack<FOUR>(sum[p], load_place<WIDE, FOUR>(to + p * s.c, n));
        const int size = (int)s.w.size;
        const int64_t end_h = s.h.end_with(at.h), first_w = s.w.first_with(w0);
        const int64_t end_w = s.w.end_with(w0 + (left < TILE ? left : TILE) - 1);
        for (int64_t h = s.h.first_with(at.h); h < end_h; h++)
            for (int64_t w = first_w; w < end_w; w += AT_ONCE) {
                const int i = (int)(at.h - s.h.first(h)) * size;
                pack<K, FOUR> won[AT_ONCE];
                pack<T, FOUR> given[AT_ONCE];
                UNROLL
                for (int u = 0; u < AT_ONCE; u++) {
                    const int64_t out = row + (h * s.w.out + (w + u < end_w ? w + u : w)) * s.c;
                    won[u] = load_place<WIDE, FOUR>(taps + out, n);
                    given[u] = load_place<WIDE, FOUR>(dy + out, n);
                }
                UNROLL
                for (int u = 0; u < AT_ONCE; u++) {
                    float g[FOUR];
                    unpack<FOUR>(g, given[u]);
                    UNROLL
                    for (int p = 0; p < TILE; p++) {
                        const int j = (int)(w0 - s.w.first(w + u)) + p;
                        const bool has = w + u < end_w && j >= 0 && j < size; /* this pixel */
                        UNROLL
                        for (int e = 0; e < FOUR; e++)
                            sum[p][e] += has && (int)won[u].v[e] == i + j ? g[e] : 0;
                    }
                }
            }
        for (int p = 0; p < TILE; p++)
            if (p < left) store_place<WIDE, FOUR>(to + p * s.c, sum[p], n);
    }
}

/* Notes the taps that win in windows of x, and y, if it is not NULL. */
template <class T, class K>
static void max_pool(const keel_call *c, const pool_shape &s, T *y, K *taps, const T *x)
{
    const int64_t all = s.rows * s.h.out * s.w.out * s.groups;
    const bool wide = s.c % 4 == 0 && wide4(x) && (!y || wide4(y)) && (!taps || wide4(taps));
    cuda_launch(c, wide ? max_kernel<T, K, true> : max_kernel<T, K, false>, cuda_blocks(all),
                CUDA_THREADS, 0, y, taps, x, s, all);
}

/* dx = what windows give to the pixels that won in them, or += */
template <class T, class K>
static void max_pool_back(const keel_call *c, const pool_shape &s, T *dx, const T *dy,
                          const K *taps, bool adds)
{
    const int64_t tiles = (s.w.in + TILE - 1) / TILE, all = s.rows * s.h.in * tiles * s.groups;
    const bool wide = s.c % 4 == 0 && wide4(dx) && wide4(dy) && wide4(taps);
    cuda_launch(c, wide ? max_back_kernel<T, K, true> : max_back_kernel<T, K, false>,
                cuda_blocks(all), CUDA_THREADS, 0, dx, dy, taps, s, tiles, all, adds);
}

/* As ops/max_pool2d.c saves them. */
static inline bool max_pool_has_many_taps(const keel_pool2d_args &a)
{
    return a.pool[0] * a.pool[1] >= 255;
}

#endif
