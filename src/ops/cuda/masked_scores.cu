/* See ops/masked_scores.c. */
#include "ops/cuda/_each.h"
#include "ops/cuda/_move.h"
extern "C" {
#include "ops/masked_scores.h"
}

namespace
{
template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    forward_kernel(T *y, const T *x, const T *mask, int64_t count, int64_t s, int64_t steps,
                   int64_t per_row, bool causal, float less)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t i = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; i < count; i += step) {
        int64_t line = i, row = i;
        const int64_t j = take(&line, s), t = take(&line, steps);
        take(&row, per_row);
        const bool seen = (!mask || to_f(mask[row * s + j]) > 0.5f) && (!causal || j <= t);
        y[i] = seen ? x[i] : to_value<T>(to_f(x[i]) - less);
    }
}

struct same {
    __device__ __forceinline__ float operator()(const float *x) const
    {
        return x[0];
    }
};

template <class T> void forward(const keel_call *c)
{
    const keel_masked_scores_args *a = cuda_args<keel_masked_scores_args>(c);
    const keel_shape &in = c->node->in[0].shape;
    const int64_t count = cuda_count(c);
    cuda_launch(c, forward_kernel<T>, cuda_blocks(count), CUDA_THREADS, 0, cuda_out<T>(c),
                cuda_in<T>(c, 0), c->node->n_in > 1 ? cuda_in<T>(c, 1) : nullptr, count,
                in.dim[in.rank - 1], in.dim[in.rank - 2], keel_row_count(&c->node->in[0]),
                a->causal, (float)a->less);
}

template <class T> void backward(const keel_call *c)
{
    if (c->in_grad[0])
        each<1, T>(c, cuda_in_grad<T>(c, 0), c->in_adds[0], cuda_count(c), { cuda_out_grad<T>(c) },
                   same{});
    if (c->node->n_in > 1) no_gradient<T>(c, 1);
}
} // namespace

MOVE_KERNEL(masked_scores);
