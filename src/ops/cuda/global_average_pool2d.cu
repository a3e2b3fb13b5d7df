/* See ops/global_average_pool2d.c. */
#include "ops/cuda/_columns.h"

namespace
{
/* A block has a warp of channels of one row. */
template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    forward_kernel(T *y, const T *x, int64_t places, int64_t c, int64_t chunks, int64_t blocks)
{
    SHARED(double, room, CUDA_THREADS);
    const int first = (int)threadIdx.x / GPU_WARP;
    for (int64_t b = blockIdx.x; b < blocks; b += gridDim.x) {
        const int64_t row = b / chunks, k = b % chunks * GPU_WARP + threadIdx.x % GPU_WARP;
        const T *image = x + row * places * c + k;
        double sum = 0;
        for (int64_t p = first; k < c && p < places; p += PLACES) sum += to_f(image[p * c]);
        sum = over_places(sum, room);
        if (first == 0 && k < c) y[row * c + k] = to_value<T>((float)(sum / (double)places));
    }
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    backward_kernel(T *dx, const T *dy, int64_t places, int64_t c, int64_t all, bool wide,
                    bool adds)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS, groups = (c + 3) / 4;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < all; t += step) {
        int64_t place = t;
        const int64_t k = 4 * take(&place, groups), at = place * c + k;
        take(&place, places);
        float g[4], old[4] = { 0, 0, 0, 0 };
        load_some(g, dy + place * c + k, c - k, wide);
        if (adds) load_some(old, dx + at, c - k, wide);
        for (int e = 0; e < 4; e++) g[e] = old[e] + g[e] / (float)places;
        store_some(dx + at, g, c - k, wide);
    }
}

template <class T> void forward(const keel_call *c)
{
    const int64_t *in = c->node->in[0].shape.dim, chunks = (in[2] + GPU_WARP - 1) / GPU_WARP;
    const int64_t blocks = c->rows * chunks;
    cuda_launch(c, forward_kernel<T>, cuda_turns(blocks), CUDA_THREADS, 0, cuda_out<T>(c),
                cuda_in<T>(c, 0), in[0] * in[1], in[2], chunks, blocks);
}

template <class T> void backward(const keel_call *c)
{
    const int64_t *in = c->node->in[0].shape.dim, places = in[0] * in[1];
    const int64_t all = c->rows * places * ((in[2] + 3) / 4);
    T *dx = cuda_in_grad<T>(c, 0);
    const T *dy = cuda_out_grad<T>(c);
    if (dx)
        cuda_launch(c, backward_kernel<T>, cuda_blocks(all), CUDA_THREADS, 0, dx, dy, places, in[2],
                    all, in[2] % 4 == 0 && wide4(dx) && wide4(dy), c->in_adds[0]);
}
} // namespace

CUDA_KERNEL(global_average_pool2d) = { .op = &keel_op_global_average_pool2d,
                                       .name = "cuda",
                                       .prepare = cuda_always,
                                       .run = { forward<float>, backward<float> },
                                       .narrow = { forward<bf16>, backward<bf16> },
                                       .half = { forward<f16>, backward<f16> } };
