/* Means over windows of an image, and what windows give back to its pixels: each of
 * average_pool2d and average_unpool2d has one of them as its forward, the other as its backward. */
#ifndef KEEL_OPS_CUDA_AVERAGE_POOL_H
#define KEEL_OPS_CUDA_AVERAGE_POOL_H
#include "ops/cuda/_pool.h"

/* Where nothing is added, four blocks of threads have enough registers. */
template <class T, bool ADDS>
static __global__ void __launch_bounds__(CUDA_THREADS, ADDS ? 1 : 4)
    average_kernel(T *y, const T *x, const pool_shape s, int64_t all, bool wide)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < all; t += step) {
        const pool_place at(s, t, s.h.out, s.w.out);
        const int64_t n = s.c - at.channel, h = s.h.first(at.h), w = s.w.first(at.w);
        const T *image = x + at.row * s.h.in * s.w.in * s.c + at.channel;
        const double share = 1.0 / (double)(s.h.covers(at.h) * s.w.covers(at.w));
        double sum[4] = { 0, 0, 0, 0 };
        float mean[4];
        for (int64_t i = h > 0 ? h : 0; i < h + s.h.size && i < s.h.in; i++)
            for (int64_t j = w > 0 ? w : 0; j < w + s.w.size && j < s.w.in; j++) {
                float p[4];
                load_some(p, image + (i * s.w.in + j) * s.c, n, wide);
                for (int e = 0; e < 4; e++) sum[e] += p[e];
            }
        T *to = y + ((at.row * s.h.out + at.h) * s.w.out + at.w) * s.c + at.channel;
        for (int e = 0; e < 4; e++) sum[e] *= share;
        if (ADDS) {
            load_some(mean, to, n, wide);
            for (int e = 0; e < 4; e++) sum[e] += mean[e];
        }
        for (int e = 0; e < 4; e++) mean[e] = (float)sum[e];
        store_some(to, mean, n, wide);
    }
}

template <class T>
static __global__ void __launch_bounds__(CUDA_THREADS, 1)
    average_back_kernel(T *dx, const T *dy, const pool_shape s, int64_t all, bool wide, bool adds)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < all; t += step) {
        const pool_place at(s, t, s.h.in, s.w.in);
        const int64_t n = s.c - at.channel;
        const int64_t in = ((at.row * s.h.in + at.h) * s.w.in + at.w) * s.c + at.channel;
        const int64_t row = at.row * s.h.out * s.w.out * s.c + at.channel;
        float sum[4] = { 0, 0, 0, 0 }, old[4];
        if (adds) load_some(old, dx + in, n, wide);
        for (int64_t h = s.h.first_with(at.h); h < s.h.end_with(at.h); h++)
            for (int64_t w = s.w.first_with(at.w); w < s.w.end_with(at.w); w++) {
                const float share = 1.0f / (float)(s.h.covers(h) * s.w.covers(w));
                float g[4];
                load_some(g, dy + row + (h * s.w.out + w) * s.c, n, wide);
                for (int e = 0; e < 4; e++) sum[e] += g[e] * share;
            }
        for (int e = 0; adds && e < 4; e++) sum[e] += old[e];
        store_some(dx + in, sum, n, wide);
    }
}

/* y = the means of windows of x, or += */
template <class T>
static void average(const keel_call *c, const pool_shape &s, T *y, const T *x, bool adds)
{
    const int64_t all = s.rows * s.h.out * s.w.out * s.groups;
    cuda_launch(c, adds ? average_kernel<T, true> : average_kernel<T, false>, cuda_blocks(all),
                CUDA_THREADS, 0, y, x, s, all, s.c % 4 == 0 && wide4(x) && wide4(y));
}

/* dx = the shares of pixels in what their windows are given, or += */
template <class T>
static void average_back(const keel_call *c, const pool_shape &s, T *dx, const T *dy, bool adds)
{
    const int64_t all = s.rows * s.h.in * s.w.in * s.groups;
    cuda_launch(c, average_back_kernel<T>, cuda_blocks(all), CUDA_THREADS, 0, dx, dy, s, all,
                s.c % 4 == 0 && wide4(dx) && wide4(dy), adds);
}

#endif
