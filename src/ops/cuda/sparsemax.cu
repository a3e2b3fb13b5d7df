/* See ops/sparsemax.c, whose steps a line goes with a thread, a warp or a block. */
#include "ops/cuda/_axis.h"
#include <math.h>

namespace
{
template <int WIDTH, class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    forward_kernel(T *y, const T *x, const axis_lines l)
{
    typedef line_of_threads<WIDTH> threads;
    SHARED(double, room, 33);
    for (int64_t line = threads::first_line(); line < l.lines; line += threads::step()) {
        const int64_t begin = l.begin(line);
        double tau = -INFINITY;
        for (int64_t step = 0; step <= l.n; step++) {
            double sum = 0, above = 0;
            for (int64_t j = threads::number(); j < l.n; j += WIDTH) {
                const double v = to_f(x[begin + j * l.inner]);
                sum += v > tau ? v : 0;
                above += v > tau ? 1 : 0;
            }
            sum = threads::fold(sum, room, gpu_plus());
            above = threads::fold(above, room, gpu_plus());
            const double next = (sum - 1) / above; /* the same for all threads of the line */
            if (!(next > tau)) break;
            tau = next;
        }
        for (int64_t j = threads::number(); j < l.n; j += WIDTH) {
            const int64_t at = begin + j * l.inner;
            const double d = to_f(x[at]) - tau;
            y[at] = to_value<T>((float)(d < 0 ? 0 : d));
        }
    }
}

template <int WIDTH, class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    backward_kernel(T *dx, const T *y, const T *dy, const axis_lines l, bool adds)
{
    typedef line_of_threads<WIDTH> threads;
    SHARED(double, room, 33);
    for (int64_t line = threads::first_line(); line < l.lines; line += threads::step()) {
        const int64_t begin = l.begin(line);
        double sum = 0, support = 0;
        for (int64_t j = threads::number(); j < l.n; j += WIDTH) {
            const int64_t at = begin + j * l.inner;
            const bool in = to_f(y[at]) > 0;
            sum += in ? to_f(dy[at]) : 0;
            support += in ? 1 : 0;
        }
        sum = threads::fold(sum, room, gpu_plus());
        support = threads::fold(support, room, gpu_plus());
        const double mean = sum / support;
        for (int64_t j = threads::number(); j < l.n; j += WIDTH) {
            const int64_t at = begin + j * l.inner;
            const double d = to_f(y[at]) > 0 ? to_f(dy[at]) - mean : 0;
            dx[at] = to_value<T>((float)(adds ? to_f(dx[at]) + d : d));
        }
    }
}

template <class T> void forward(const keel_call *c)
{
    axis_forward<T>(c, [](auto width) { return forward_kernel<width(), T>; });
}

template <class T> void backward(const keel_call *c)
{
    const axis_lines l = axis_lines_of(c);
    if (!c->in_grad[0]) return;
    axis_launch(
        c, l, [](auto width) { return backward_kernel<width(), T>; }, cuda_in_grad<T>(c, 0),
        cuda_out<T>(c), cuda_out_grad<T>(c), l, c->in_adds[0]);
}
} // namespace

CUDA_KERNEL(sparsemax) = { .op = &keel_op_sparsemax,
                           .name = "cuda",
                           .prepare = cuda_always,
                           .run = { forward<float>, backward<float> },
                           .narrow = { forward<bf16>, backward<bf16> },
                           .half = { forward<f16>, backward<f16> } };
