/* See ops/not_equal_to.c. */
#include "ops/cuda/_numbers.h"

namespace
{
template <class T, class N>
__global__ void __launch_bounds__(CUDA_THREADS)
    forward_kernel(T *y, const N *x, int64_t count, int64_t n, double value)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t i = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; i < count; i += step) {
        bool differs = false;
        for (int64_t k = i * n; k < (i + 1) * n && !differs; k++) {
            if constexpr (std::is_integral<N>::value)
                differs = (double)x[k] != value;
            else
                differs = (double)to_f(x[k]) != value;
        }
        y[i] = to_value<T>(differs ? 1.0f : 0.0f);
    }
}

template <class T> void forward(const keel_call *c)
{
    const keel_not_equal_to_args *a = cuda_args<keel_not_equal_to_args>(c);
    const keel_shape &in = c->node->in[0].shape;
    const int64_t n = a->any ? in.dim[in.rank - 1] : 1, count = cuda_count(c);
    T *y = cuda_out<T>(c);
    with_type(c->node->in[0].dtype, c->in[0], [&](const auto *x) {
        typedef std::remove_cv_t<std::remove_pointer_t<decltype(x)>> N;
        cuda_launch(c, forward_kernel<T, N>, cuda_blocks(count), CUDA_THREADS, 0, y, x, count, n,
                    (double)(float)a->value);
    });
}

keel_status prepare(keel_prepare *p)
{
    return knows_type(p->node->in[0].dtype) ? cuda_always(p) : KEEL_EUNSUP;
}
} // namespace

CUDA_KERNEL(not_equal_to) = { .op = &keel_op_not_equal_to,
                              .name = "cuda",
                              .prepare = prepare,
                              .run = { forward<float> },
                              .narrow = { forward<bf16> },
                              .half = { forward<f16> } };
