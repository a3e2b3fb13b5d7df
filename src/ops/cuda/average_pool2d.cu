/* See ops/average_pool2d.c. */
#include "ops/cuda/_pool.h"

namespace
{
template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    forward_kernel(T *y, const T *x, const pool_shape s, int64_t all, bool wide)
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
        for (int e = 0; e < 4; e++) mean[e] = (float)(sum[e] * share);
        store_some(y + ((at.row * s.h.out + at.h) * s.w.out + at.w) * s.c + at.channel, mean, n,
                   wide);
    }
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    backward_kernel(T *dx, const T *dy, const pool_shape s, int64_t all, bool wide, bool adds)
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

template <class T> void forward(const keel_call *c)
{
    const pool_shape s = pool_shape_of(c);
    const int64_t all = s.rows * s.h.out * s.w.out * s.groups;
    T *y = cuda_out<T>(c);
    const T *x = cuda_in<T>(c, 0);
    cuda_launch(c, forward_kernel<T>, cuda_blocks(all), CUDA_THREADS, 0, y, x, s, all,
                s.c % 4 == 0 && wide4(x) && wide4(y));
}

template <class T> void backward(const keel_call *c)
{
    const pool_shape s = pool_shape_of(c);
    const int64_t all = s.rows * s.h.in * s.w.in * s.groups;
    T *dx = cuda_in_grad<T>(c, 0);
    const T *dy = cuda_out_grad<T>(c);
    if (dx)
        cuda_launch(c, backward_kernel<T>, cuda_blocks(all), CUDA_THREADS, 0, dx, dy, s, all,
                    s.c % 4 == 0 && wide4(dx) && wide4(dy), c->in_adds[0]);
}
} // namespace

CUDA_KERNEL(average_pool2d) = { .op = &keel_op_average_pool2d,
                                .name = "cuda",
                                .prepare = cuda_always,
                                .run = { forward<float>, backward<float> },
                                .narrow = { forward<bf16>, backward<bf16> },
                                .half = { forward<f16>, backward<f16> } };
