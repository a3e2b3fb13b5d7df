/* softmax and log_softmax along one axis: see ops/softmax.c. */
#ifndef KEEL_OPS_CUDA_SOFTMAX_H
#define KEEL_OPS_CUDA_SOFTMAX_H
#include "ops/cuda/_axis.h"

static inline axis_lines softmax_lines_of(const keel_call *c)
{
    return axis_lines_of(c->node, c->node->out[0], c->rows);
}

/* A line whose elements are neighbours. */
template <bool LONG, bool LOG, class T>
static __global__ void __launch_bounds__(CUDA_THREADS)
    softmax_kernel(T *out, const T *in, const axis_lines l)
{
    typedef line_threads<LONG> threads;
    SHARED(float, room, 33);
    for (int64_t line = threads::first_line(); line < l.lines; line += threads::step()) {
        const T *x = in + line * l.n;
        T *y = out + line * l.n;
        float max = -INFINITY, sum = 0;
        for (int64_t j = threads::number(); j < l.n; j += threads::WIDTH)
            max = gpu_greater()(to_f(x[j]), max);
        max = threads::fold(max, room, gpu_greater());
        for (int64_t j = threads::number(); j < l.n; j += threads::WIDTH)
            sum += expf(to_f(x[j]) - max);
        sum = threads::fold(sum, room, gpu_plus());
        const float by = LOG ? logf(sum) : 1 / sum;
        for (int64_t j = threads::number(); j < l.n; j += threads::WIDTH) {
            const float v = to_f(x[j]) - max;
            y[j] = to_value<T>(LOG ? v - by : expf(v) * by);
        }
    }
}

/* dx = y (dy - sum(y dy)), or dy - exp(y) sum(dy) */
template <bool LONG, bool LOG, class T>
static __global__ void __launch_bounds__(CUDA_THREADS)
    softmax_back_kernel(T *in_grad, const T *out, const T *out_grad, bool adds, const axis_lines l)
{
    typedef line_threads<LONG> threads;
    SHARED(float, room, 33);
    for (int64_t line = threads::first_line(); line < l.lines; line += threads::step()) {
        const T *y = out + line * l.n, *dy = out_grad + line * l.n;
        T *dx = in_grad + line * l.n;
        float sum = 0;
        for (int64_t j = threads::number(); j < l.n; j += threads::WIDTH)
            sum += LOG ? to_f(dy[j]) : to_f(y[j]) * to_f(dy[j]);
        sum = threads::fold(sum, room, gpu_plus());
        for (int64_t j = threads::number(); j < l.n; j += threads::WIDTH) {
            const float p = to_f(y[j]), g = to_f(dy[j]);
            const float d = LOG ? g - expf(p) * sum : p * (g - sum);
            dx[j] = to_value<T>(adds ? to_f(dx[j]) + d : d);
        }
    }
}

/* An axis that is not the last: a thread has a line, and neighbours have neighbouring lines. */
template <bool LOG, class T>
static __global__ void __launch_bounds__(CUDA_THREADS)
    softmax_apart_kernel(T *out, const T *in, const axis_lines l)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < l.lines; t += step) {
        const int64_t at = l.begin(t);
        float max = -INFINITY, sum = 0;
        for (int64_t j = 0; j < l.n; j++) max = gpu_greater()(to_f(in[at + j * l.inner]), max);
        for (int64_t j = 0; j < l.n; j++) sum += expf(to_f(in[at + j * l.inner]) - max);
        const float by = LOG ? logf(sum) : 1 / sum;
        for (int64_t j = 0; j < l.n; j++) {
            const float v = to_f(in[at + j * l.inner]) - max;
            out[at + j * l.inner] = to_value<T>(LOG ? v - by : expf(v) * by);
        }
    }
}

template <bool LOG, class T>
static __global__ void __launch_bounds__(CUDA_THREADS)
    softmax_apart_back_kernel(T *in_grad, const T *out, const T *out_grad, bool adds,
                              const axis_lines l)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < l.lines; t += step) {
        const int64_t at = l.begin(t);
        float sum = 0;
        for (int64_t j = 0; j < l.n; j++) {
            const int64_t e = at + j * l.inner;
            sum += LOG ? to_f(out_grad[e]) : to_f(out[e]) * to_f(out_grad[e]);
        }
        for (int64_t j = 0; j < l.n; j++) {
            const int64_t e = at + j * l.inner;
            const float p = to_f(out[e]), g = to_f(out_grad[e]);
            const float d = LOG ? g - expf(p) * sum : p * (g - sum);
            in_grad[e] = to_value<T>(adds ? to_f(in_grad[e]) + d : d);
        }
    }
}

template <bool LOG, class T> static void softmax_forward(const keel_call *c)
{
    const axis_lines l = softmax_lines_of(c);
    const bool is_long = l.n > LINE_LONG;
    T *y = cuda_out<T>(c);
    const T *x = cuda_in<T>(c, 0);
    if (l.inner > 1)
        cuda_launch(c, softmax_apart_kernel<LOG, T>, cuda_blocks(l.lines), CUDA_THREADS, 0, y, x,
                    l);
    else if (is_long)
        cuda_launch(c, softmax_kernel<true, LOG, T>, line_blocks(l.lines, true), CUDA_THREADS, 0, y,
                    x, l);
    else
        cuda_launch(c, softmax_kernel<false, LOG, T>, line_blocks(l.lines, false), CUDA_THREADS, 0,
                    y, x, l);
}

template <bool LOG, class T> static void softmax_backward(const keel_call *c)
{
    const axis_lines l = softmax_lines_of(c);
    const bool is_long = l.n > LINE_LONG, adds = c->in_adds[0];
    const T *y = cuda_out<T>(c), *dy = cuda_out_grad<T>(c);
    T *dx = cuda_in_grad<T>(c, 0);
    if (!dx) return;
    if (l.inner > 1)
        cuda_launch(c, softmax_apart_back_kernel<LOG, T>, cuda_blocks(l.lines), CUDA_THREADS, 0, dx,
                    y, dy, adds, l);
    else if (is_long)
        cuda_launch(c, softmax_back_kernel<true, LOG, T>, line_blocks(l.lines, true), CUDA_THREADS,
                    0, dx, y, dy, adds, l);
    else
        cuda_launch(c, softmax_back_kernel<false, LOG, T>, line_blocks(l.lines, false),
                    CUDA_THREADS, 0, dx, y, dy, adds, l);
}

#define SOFTMAX_KERNEL(stem, LOG)                                                                  \
    CUDA_KERNEL(stem) = { .op = &keel_op_##stem,                                                   \
                          .name = "cuda",                                                          \
                          .prepare = cuda_always,                                                  \
                          .run = { softmax_forward<LOG, float>, softmax_backward<LOG, float> },    \
                          .narrow = { softmax_forward<LOG, bf16>, softmax_backward<LOG, bf16> },   \
                          .half = { softmax_forward<LOG, f16>, softmax_backward<LOG, f16> } }

#endif
