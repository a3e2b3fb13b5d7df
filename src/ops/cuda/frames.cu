/* See ops/frames.c. */
#include "ops/cuda/_frames.h"

namespace
{
template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    forward_kernel(T *y, const T *x, const double *factor, const frame_lines s)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS, all = s.lines * s.frames * s.size;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < all; t += step) {
        int64_t line = t;
        const int64_t i = take(&line, s.size), f = take(&line, s.frames);
        const double v = to_f(x[line * s.n + frames_at(s, f, i)]);
        y[t] = to_value<T>((float)(v * factor[i]));
    }
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    backward_kernel(T *dx, const T *dy, const double *factor, const frame_lines s, bool adds)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < s.lines * s.n;
         t += step) {
        int64_t line = t;
        const int64_t at = take(&line, s.n);
        const T *from = dy + line * s.frames * s.size;
        const double sum =
            frames_of([=](int64_t k) { return (double)to_f(from[k]); }, factor, s, at);
        dx[t] = to_value<T>((float)(adds ? to_f(dx[t]) + sum : sum));
    }
}

frame_lines lines_of(const keel_call *c)
{
    const keel_frames_args *a = cuda_args<keel_frames_args>(c);
    const keel_shape &in = c->node->in[0].shape, &out = c->node->out[0].shape;
    const int64_t n = in.dim[in.rank - 1];
    return { c->rows * (keel_row_count(&c->node->in[0]) / n),
             n,
             out.dim[out.rank - 2],
             a->size,
             a->stride,
             a->centred ? a->size / 2 : 0 };
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
    cuda_launch(c, backward_kernel<T>, cuda_blocks(s.lines * s.n), CUDA_THREADS, 0,
                cuda_in_grad<T>(c, 0), cuda_out_grad<T>(c), frame_factors(c), s, c->in_adds[0]);
}
} // namespace

CUDA_KERNEL(frames) = { .op = &keel_op_frames,
                        .name = "cuda",
                        .prepare = frames_prepare,
                        .run = { forward<float>, backward<float> },
                        .narrow = { forward<bf16>, backward<bf16> },
                        .half = { forward<f16>, backward<f16> } };
