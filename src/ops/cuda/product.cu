/* See ops/product.c. A line has a thread, a warp or a block, which its length decides. */
#include "ops/cuda/_axis.h"

namespace
{
struct times_of {
    __device__ __forceinline__ double operator()(double a, double b) const
    {
        return a * b;
    }
};

template <int WIDTH, class T>
__global__ void __launch_bounds__(CUDA_THREADS) forward_kernel(T *y, const T *x, const axis_lines l)
{
    typedef line_of_threads<WIDTH> threads;
    SHARED(double, room, 33);
    for (int64_t line = threads::first_line(); line < l.lines; line += threads::step()) {
        const int64_t begin = l.begin(line);
        double product = 1;
        for (int64_t j = threads::number(); j < l.n; j += WIDTH)
            product *= to_f(x[begin + j * l.inner]);
        product = threads::fold(product, room, times_of());
        if (threads::number() == 0) y[line] = to_value<T>((float)product);
    }
}

/* The slope is the product of the others, which a factor of 0 leaves whole. */
template <int WIDTH, class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    backward_kernel(T *dx, const T *x, const T *dy, const axis_lines l, bool adds)
{
    typedef line_of_threads<WIDTH> threads;
    SHARED(double, room, 33);
    for (int64_t line = threads::first_line(); line < l.lines; line += threads::step()) {
        const int64_t begin = l.begin(line);
        const double g = to_f(dy[line]);
        double product = 1, zeros = 0;
        for (int64_t j = threads::number(); j < l.n; j += WIDTH) {
            const double v = to_f(x[begin + j * l.inner]);
            product *= v == 0 ? 1 : v;
            zeros += v == 0 ? 1 : 0;
        }
        product = threads::fold(product, room, times_of());
        zeros = threads::fold(zeros, room, gpu_plus());
        for (int64_t j = threads::number(); j < l.n; j += WIDTH) {
            const int64_t at = begin + j * l.inner;
            const double v = to_f(x[at]);
            double others = zeros == 1 && v == 0 ? product : 0;
            if (zeros == 0) others = product / v;
            const double d = g * others;
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
        cuda_in<T>(c, 0), cuda_out_grad<T>(c), l, c->in_adds[0]);
}
} // namespace

CUDA_KERNEL(product) = { .op = &keel_op_product,
                         .name = "cuda",
                         .prepare = cuda_always,
                         .run = { forward<float>, backward<float> },
                         .narrow = { forward<bf16>, backward<bf16> },
                         .half = { forward<f16>, backward<f16> } };
