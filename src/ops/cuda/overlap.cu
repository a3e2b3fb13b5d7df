/* See ops/overlap.c. */
#include "ops/cuda/_frames.h"

namespace
{
template <class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    forward_kernel(T *y, const T *x, const double *factor, const frame_lines s)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < s.lines * s.n;
         t += step) {
        int64_t line = t;
        const int64_t at = take(&line, s.n);
        const T *from = x + line * s.frames * s.size;
        y[t] = to_value<T>((float)frames_sum([=](int64_t k) { return (double)to_f(from[k]); },
                                             factor, s, at + s.before));
    }
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    backward_kernel(T *dx, const T *dy, const double *factor, const frame_lines s, bool adds)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS, all = s.lines * s.frames * s.size;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < all; t += step) {
        int64_t line = t;
        const int64_t i = take(&line, s.size), f = take(&line, s.frames);
        const int64_t at = f * s.stride + i - s.before;
        double g = 0;
        if (at >= 0 && at < s.n) g = (double)to_f(dy[line * s.n + at]) * factor[i];
        dx[t] = to_value<T>((float)(adds ? to_f(dx[t]) + g : g));
    }
}

frame_lines lines_of(const keel_call *c)
{
    const keel_frames_args *a = cuda_args<keel_frames_args>(c);
    const keel_shape &in = c->node->in[0].shape;
    const int64_t frames = in.dim[in.rank - 2];
    return { c->rows * (keel_row_count(&c->node->in[0]) / (frames * a->size)),
             a->count,
             frames,
             a->size,
             a->stride,
             a->begin };
}

template <class T> void forward(const keel_call *c)
{
    cuda_launch(c, forward_kernel<T>, cuda_blocks(cuda_count(c)), CUDA_THREADS, 0, cuda_out<T>(c),
                cuda_in<T>(c, 0), frame_factors(c), lines_of(c));
}

template <class T> void backward(const keel_call *c)
{
    const frame_lines s = lines_of(c);
    if (!c->in_grad[0]) return;
    cuda_launch(c, backward_kernel<T>, cuda_blocks(s.lines * s.frames * s.size), CUDA_THREADS, 0,
                cuda_in_grad<T>(c, 0), cuda_out_grad<T>(c), frame_factors(c), s, c->in_adds[0]);
}
} // namespace

CUDA_KERNEL(overlap) = { .op = &keel_op_overlap,
                         .name = "cuda",
                         .prepare = frames_prepare,
                         .run = { forward<float>, backward<float> },
                         .narrow = { forward<bf16>, backward<bf16> },
                         .half = { forward<f16>, backward<f16> } };
