/* See ops/glu.c. */
#include "ops/cuda/_kernel.h"

namespace
{
struct halves {
    int64_t half, all; /* elements of a half of a line; of the output */
};

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS) forward_kernel(T *y, const T *x, const halves s)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < s.all; t += step) {
        int64_t line = t;
        const int64_t i = take(&line, s.half);
        const T *a = x + line * 2 * s.half + i;
        y[t] = to_value<T>(to_f(a[0]) / (1 + expf(-to_f(a[s.half]))));
    }
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    backward_kernel(T *dx, const T *x, const T *dy, const halves s, bool adds)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < s.all; t += step) {
        int64_t line = t;
        const int64_t i = take(&line, s.half), at = line * 2 * s.half + i;
        const float a = to_f(x[at]), b = to_f(x[at + s.half]), g = to_f(dy[t]);
        const float gate = 1 / (1 + expf(-b)), closed = 1 / (1 + expf(b)); /* 1 - gate cancels */
        const float ga = g * gate, gb = g * a * gate * closed;
        dx[at] = to_value<T>(adds ? to_f(dx[at]) + ga : ga);
        dx[at + s.half] = to_value<T>(adds ? to_f(dx[at + s.half]) + gb : gb);
    }
}

halves halves_of(const keel_call *c)
{
    const keel_shape &out = c->node->out[0].shape;
    const int64_t given = cuda_args<keel_axis_args>(c)->axis;
    halves s = { 1, cuda_count(c) };
    for (int d = (int)(given < 0 ? given + out.rank : given); d < out.rank; d++)
        s.half *= out.dim[d];
    return s;
}

template <class T> void forward(const keel_call *c)
{
    const halves s = halves_of(c);
    cuda_launch(c, forward_kernel<T>, cuda_blocks(s.all), CUDA_THREADS, 0, cuda_out<T>(c),
                cuda_in<T>(c, 0), s);
}

template <class T> void backward(const keel_call *c)
{
    const halves s = halves_of(c);
    if (c->in_grad[0])
        cuda_launch(c, backward_kernel<T>, cuda_blocks(s.all), CUDA_THREADS, 0,
                    cuda_in_grad<T>(c, 0), cuda_in<T>(c, 0), cuda_out_grad<T>(c), s, c->in_adds[0]);
}
} // namespace

CUDA_KERNEL(glu) = { .op = &keel_op_glu,
                     .name = "cuda",
                     .prepare = cuda_always,
                     .run = { forward<float>, backward<float> },
                     .narrow = { forward<bf16>, backward<bf16> },
                     .half = { forward<f16>, backward<f16> } };
