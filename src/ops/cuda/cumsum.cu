/* See ops/cumsum.c. A thread has a line where neighbours have neighbouring lines; else a warp has
 * one, and adds up GPU_WARP places at a time. */
#include "ops/cuda/_axis.h"

namespace
{
struct sums_shape : axis_lines {
    bool back, adds; /* back: from the last place to the first */
};

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    apart_kernel(T *to, const T *from, const sums_shape s)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < s.lines; t += step) {
        const int64_t first = s.begin(t);
        double sum = 0;
        for (int64_t k = 0; k < s.n; k++) {
            const int64_t at = first + (s.back ? s.n - 1 - k : k) * s.inner;
            sum += to_f(from[at]);
            to[at] = to_value<T>((float)(s.adds ? to_f(to[at]) + sum : sum));
        }
    }
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    warp_kernel(T *to, const T *from, const sums_shape s)
{
    typedef line_threads<false> threads;
    for (int64_t line = threads::first_line(); line < s.lines; line += threads::step()) {
        double before = 0;
        for (int64_t begin = 0; begin < s.n; begin += GPU_WARP) {
            const int64_t k = begin + threads::number();
            const int64_t at = line * s.n + (s.back ? s.n - 1 - k : k);
            double sum = k < s.n ? to_f(from[at]) : 0;
            for (int by = 1; by < GPU_WARP; by *= 2) { /* of this lane and those before it */
                const int other = threads::number() - by;
                const double more = __shfl_sync(GPU_ALL, sum, other < 0 ? 0 : other);
                if (other >= 0) sum += more;
            }
            const double all = before + sum;
            if (k < s.n) to[at] = to_value<T>((float)(s.adds ? to_f(to[at]) + all : all));
            before += __shfl_sync(GPU_ALL, sum, GPU_WARP - 1);
        }
    }
}

template <class T> void run(const keel_call *c, T *to, const T *from, bool back, bool adds)
{
    const sums_shape s = { axis_lines_of(c), back, adds };
    if (s.inner > 1)
        cuda_launch(c, apart_kernel<T>, cuda_blocks(s.lines), CUDA_THREADS, 0, to, from, s);
    else
        cuda_launch(c, warp_kernel<T>, line_blocks(s.lines, false), CUDA_THREADS, 0, to, from, s);
}

template <class T> void forward(const keel_call *c)
{
    run(c, cuda_out<T>(c), cuda_in<T>(c, 0), false, false);
}

template <class T> void backward(const keel_call *c)
{
    if (c->in_grad[0]) run(c, cuda_in_grad<T>(c, 0), cuda_out_grad<T>(c), true, c->in_adds[0]);
}
} // namespace

CUDA_KERNEL(cumsum) = { .op = &keel_op_cumsum,
                        .name = "cuda",
                        .prepare = cuda_always,
                        .run = { forward<float>, backward<float> },
                        .narrow = { forward<bf16>, backward<bf16> },
                        .half = { forward<f16>, backward<f16> } };
