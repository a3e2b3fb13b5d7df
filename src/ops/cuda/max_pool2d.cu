/* See ops/max_pool2d.c. */
#include "ops/cuda/_pool.h"

namespace
{
/* K: uint8_t or int32_t, the tap that won; -1 as a K is nobody. */
template <class K>
__device__ __forceinline__ void load_taps(K taps[4], const K *from, int64_t n, bool wide)
{
    if (wide && n >= 4) {
        gpu_aligned(from, sizeof(four<K>));
        const four<K> all = *reinterpret_cast<const four<K> *>(from);
        for (int e = 0; e < 4; e++) taps[e] = all.v[e];
        return;
    }
    for (int e = 0; e < 4; e++) taps[e] = e < n ? from[e] : (K)-1;
}

template <class K>
__device__ __forceinline__ void store_taps(K *to, const K taps[4], int64_t n, bool wide)
{
    if (wide && n >= 4) {
        four<K> all;
        gpu_aligned(to, sizeof(four<K>));
        for (int e = 0; e < 4; e++) all.v[e] = taps[e];
        *reinterpret_cast<four<K> *>(to) = all;
        return;
    }
    for (int e = 0; e < 4; e++)
        if (e < n) to[e] = taps[e];
}

template <class T, class K>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    forward_kernel(T *y, K *taps, const T *x, const pool_shape s, int64_t all, bool wide)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < all; t += step) {
        const pool_place at(s, t, s.h.out, s.w.out);
        const int64_t n = s.c - at.channel, h = s.h.first(at.h), w = s.w.first(at.w);
        const T *image = x + at.row * s.h.in * s.w.in * s.c + at.channel;
        float best[4] = { -INFINITY, -INFINITY, -INFINITY, -INFINITY };
        K won[4];
        bool any = false;
        for (int e = 0; e < 4; e++) won[e] = (K)-1;
        for (int64_t i = 0; i < s.h.size; i++)
            for (int64_t j = 0; j < s.w.size; j++) {
                if (h + i < 0 || h + i >= s.h.in || w + j < 0 || w + j >= s.w.in) continue;
                float p[4];
                load_some(p, image + ((h + i) * s.w.in + w + j) * s.c, n, wide);
                for (int e = 0; e < 4; e++) {
                    if (any && !(p[e] > best[e]) && p[e] == p[e]) continue; /* a NaN stays */
                    best[e] = p[e];
                    won[e] = (K)(i * s.w.size + j);
                }
                any = true;
            }
        for (int e = 0; s.relu && e < 4; e++) {
            if (!(best[e] <= 0)) continue;
            best[e] = 0;
            won[e] = (K)-1;
        }
        const int64_t out = ((at.row * s.h.out + at.h) * s.w.out + at.w) * s.c + at.channel;
        store_some(y + out, best, n, wide);
        if (taps) store_taps(taps + out, won, n, wide);
    }
}

const int TILE = 4; /* neighbouring pixels of a thread, which mostly are in the same windows */

template <class T, class K>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    backward_kernel(T *dx, const T *dy, const K *taps, const pool_shape s, int64_t tiles,
                    int64_t all, bool wide, bool adds)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < all; t += step) {
        const pool_place at(s, t, s.h.in, tiles);
        const int64_t n = s.c - at.channel, w0 = TILE * at.w, left = s.w.in - w0;
        const int64_t row = at.row * s.h.out * s.w.out * s.c + at.channel;
        T *to = dx + ((at.row * s.h.in + at.h) * s.w.in + w0) * s.c + at.channel;
        float sum[TILE][4];
        for (int p = 0; p < TILE; p++)
            load_some(sum[p], to + p * s.c, adds && p < left ? n : 0, wide);
        const int64_t end_h = s.h.end_with(at.h);
        const int64_t end_w = s.w.end_with(w0 + (left < TILE ? left : TILE) - 1);
        for (int64_t h = s.h.first_with(at.h); h < end_h; h++)
            for (int64_t w = s.w.first_with(w0); w < end_w; w++) {
                const int64_t out = row + (h * s.w.out + w) * s.c;
                const int size = (int)s.w.size, i = (int)(at.h - s.h.first(h)) * size;
                K won[4];
                float g[4];
                load_taps(won, taps + out, n, wide);
                load_some(g, dy + out, n, wide);
                for (int p = 0; p < TILE; p++) {
                    const int j = (int)(w0 - s.w.first(w)) + p;
                    const int tap = j >= 0 && j < size ? i + j : -2; /* no window's */
                    for (int e = 0; e < 4; e++)
                        if ((int)won[e] == tap) sum[p][e] += g[e];
                }
            }
        for (int p = 0; p < TILE; p++)
            if (p < left) store_some(to + p * s.c, sum[p], n, wide);
    }
}

template <class T, class K> void forward_as(const keel_call *c)
{
    const pool_shape s = pool_shape_of(c);
    const int64_t all = s.rows * s.h.out * s.w.out * s.groups;
    T *y = cuda_out<T>(c);
    const T *x = cuda_in<T>(c, 0);
    K *taps = c->node->n_saved ? static_cast<K *>(c->saved[0]) : nullptr;
    const bool wide = s.c % 4 == 0 && wide4(x) && wide4(y) && (!taps || wide4(taps));
    cuda_launch(c, forward_kernel<T, K>, cuda_blocks(all), CUDA_THREADS, 0, y, taps, x, s, all,
                wide);
}

template <class T, class K> void backward_as(const keel_call *c)
{
    const pool_shape s = pool_shape_of(c);
    const int64_t tiles = (s.w.in + TILE - 1) / TILE, all = s.rows * s.h.in * tiles * s.groups;
    T *dx = cuda_in_grad<T>(c, 0);
    const T *dy = cuda_out_grad<T>(c);
    const K *taps = static_cast<const K *>(c->saved[0]);
    const bool wide = s.c % 4 == 0 && wide4(dx) && wide4(dy) && wide4(taps);
    if (dx)
        cuda_launch(c, backward_kernel<T, K>, cuda_blocks(all), CUDA_THREADS, 0, dx, dy, taps, s,
                    tiles, all, wide, c->in_adds[0]);
}

bool has_many_taps(const keel_node *n)
{
    return n->n_saved && n->saved[0].dtype == KEEL_INT32;
}

template <class T> void forward(const keel_call *c)
{
    has_many_taps(c->node) ? forward_as<T, int32_t>(c) : forward_as<T, uint8_t>(c);
}

template <class T> void backward(const keel_call *c)
{
    has_many_taps(c->node) ? backward_as<T, int32_t>(c) : backward_as<T, uint8_t>(c);
}
} // namespace

CUDA_KERNEL(max_pool2d) = { .op = &keel_op_max_pool2d,
                            .name = "cuda",
                            .prepare = cuda_always,
                            .run = { forward<float>, backward<float> },
                            .narrow = { forward<bf16>, backward<bf16> },
                            .half = { forward<f16>, backward<f16> } };
