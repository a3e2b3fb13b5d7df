/* See ops/one_hot.c. A thread has an element of the output. */
#include "ops/cuda/_move.h"
extern "C" {
#include "ops/one_hot.h"
}

namespace
{
template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    forward_kernel(T *y, const T *x, int64_t count, int64_t n)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < count; t += step) {
        int64_t place = t;
        const int64_t k = take(&place, n);
        y[t] = to_value<T>((double)truncf(to_f(x[place])) == (double)k ? 1.0f : 0.0f);
    }
}

template <class T> void forward(const keel_call *c)
{
    cuda_launch(c, forward_kernel<T>, cuda_blocks(cuda_count(c)), CUDA_THREADS, 0, cuda_out<T>(c),
                cuda_in<T>(c, 0), cuda_count(c), cuda_args<keel_one_hot_args>(c)->n);
}

template <class T> void backward(const keel_call *c)
{
    no_gradient<T>(c, 0);
}
} // namespace

MOVE_KERNEL(one_hot);
