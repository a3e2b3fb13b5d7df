/* See ops/masked.c. */
#include "ops/cuda/_move.h"

namespace
{
template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    run_kernel(T *to, const T *from, const T *mask, int64_t count, int64_t n, bool adds)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t i = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; i < count; i += step) {
        int64_t place = i;
        take(&place, n);
        const float x = to_f(mask[place]) > 0.5f ? to_f(from[i]) : 0;
        to[i] = to_value<T>(adds ? to_f(to[i]) + x : x);
    }
}

template <class T> void run(const keel_call *c, T *to, const T *from, bool adds)
{
    const keel_node *n = c->node;
    cuda_launch(c, run_kernel<T>, cuda_blocks(cuda_count(c)), CUDA_THREADS, 0, to, from,
                cuda_in<T>(c, 1), cuda_count(c),
                keel_row_count(&n->in[0]) / keel_row_count(&n->in[1]), adds);
}

template <class T> void forward(const keel_call *c)
{
    run(c, cuda_out<T>(c), cuda_in<T>(c, 0), false);
}

template <class T> void backward(const keel_call *c)
{
    if (c->in_grad[0]) run(c, cuda_in_grad<T>(c, 0), cuda_out_grad<T>(c), c->in_adds[0]);
    no_gradient<T>(c, 1);
}
} // namespace

MOVE_KERNEL(masked);
