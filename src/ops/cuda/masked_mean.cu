/* See ops/masked_mean.c. */
#include "ops/cuda/_columns.h"
#include "ops/cuda/_move.h"

namespace
{
/* How many places of a row's mask count. All threads of a block call it. */
template <class T> __device__ double places_of(const T *mask, int64_t steps, double *room)
{
    double n = 0;
    for (int64_t t = threadIdx.x; t < steps; t += CUDA_THREADS) n += to_f(mask[t]) > 0.5f;
    return block_fold(n, room, gpu_plus());
}

/* A block has a warp of channels of one row. */
template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    forward_kernel(T *y, const T *values, const T *masks, int64_t steps, int64_t c, int64_t chunks,
                   int64_t blocks)
{
    SHARED(double, room, CUDA_THREADS);
    const int first = (int)threadIdx.x / GPU_WARP;
    for (int64_t b = blockIdx.x; b < blocks; b += gridDim.x) {
        const int64_t row = b / chunks, k = b % chunks * GPU_WARP + threadIdx.x % GPU_WARP;
        const T *x = values + row * steps * c + k, *mask = masks + row * steps;
        const double n = places_of(mask, steps, room);
        double sum = 0;
        for (int64_t t = first; k < c && t < steps; t += PLACES)
            sum += to_f(mask[t]) > 0.5f ? to_f(x[t * c]) : 0;
        sum = over_places(sum, room);
        if (first == 0 && k < c) y[row * c + k] = to_value<T>((float)(sum / n));
    }
}

/* A block has a row. */
template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    backward_kernel(T *dx, const T *masks, const T *dy, int64_t steps, int64_t c, int64_t rows,
                    bool adds)
{
    SHARED(double, room, 33);
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        const T *mask = masks + row * steps, *g = dy + row * c;
        const float n = (float)places_of(mask, steps, room);
        T *to = dx + row * steps * c;
        for (int64_t i = threadIdx.x; i < steps * c; i += CUDA_THREADS) {
            int64_t t = i;
            const int64_t k = take(&t, c);
            const float v = to_f(mask[t]) > 0.5f ? to_f(g[k]) / n : 0;
            to[i] = to_value<T>(adds ? to_f(to[i]) + v : v);
        }
    }
}

template <class T> void forward(const keel_call *c)
{
    const int64_t *in = c->node->in[0].shape.dim, chunks = (in[1] + GPU_WARP - 1) / GPU_WARP;
    const int64_t blocks = c->rows * chunks;
    cuda_launch(c, forward_kernel<T>, cuda_turns(blocks), CUDA_THREADS, 0, cuda_out<T>(c),
                cuda_in<T>(c, 0), cuda_in<T>(c, 1), in[0], in[1], chunks, blocks);
}

template <class T> void backward(const keel_call *c)
{
    const int64_t *in = c->node->in[0].shape.dim;
    if (c->in_grad[0])
        cuda_launch(c, backward_kernel<T>, cuda_turns(c->rows), CUDA_THREADS, 0,
                    cuda_in_grad<T>(c, 0), cuda_in<T>(c, 1), cuda_out_grad<T>(c), in[0], in[1],
                    c->rows, c->in_adds[0]);
    no_gradient<T>(c, 1);
}
} // namespace

MOVE_KERNEL(masked_mean);
