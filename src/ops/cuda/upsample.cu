/* See ops/upsample.c. A thread has an element of the output or, on the way back, of the input, and
 * adds what comes back to it in the order of the output. */
#include "ops/cuda/_kernel.h"

namespace
{
struct stretch {
    int64_t n, inner, factor, all; /* places of the input along the axis; elements of the call */
    bool between;
};

struct place { /* output o is (1 - share) first + share second */
    int64_t first, second;
    float share;
};

__device__ place place_of(const stretch &s, int64_t o)
{
    if (!s.between) return { o / s.factor, o / s.factor, 0 };
    const double at = ((double)o + 0.5) / (double)s.factor - 0.5, first = floor(at);
    return { first < 0 ? 0 : (int64_t)first,
             (int64_t)first + 1 < s.n ? (int64_t)first + 1 : s.n - 1, (float)(at - first) };
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS) forward_kernel(T *y, const T *x, const stretch s)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < s.all * s.factor;
         t += step) {
        int64_t rest = t;
        const int64_t k = take(&rest, s.inner), o = take(&rest, s.n * s.factor);
        const place p = place_of(s, o);
        const T *line = x + rest * s.n * s.inner + k;
        const float a = to_f(line[p.first * s.inner]);
        if (p.share > 0) {
            const float b = to_f(line[p.second * s.inner]);
            y[t] = to_value<T>(a + p.share * (b - a));
        } else {
            y[t] = to_value<T>(a);
        }
    }
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    backward_kernel(T *dx, const T *dy, const stretch s, bool adds)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < s.all; t += step) {
        int64_t rest = t;
        const int64_t k = take(&rest, s.inner), at = take(&rest, s.n);
        const int64_t reach = s.between ? 1 : 0, far = (at + 1 + reach) * s.factor;
        const int64_t end = far < s.n * s.factor ? far : s.n * s.factor;
        const T *line = dy + rest * s.n * s.factor * s.inner + k;
        float sum = adds ? to_f(dx[t]) : 0;
        for (int64_t o = at > reach ? (at - reach) * s.factor : 0; o < end; o++) {
            const place p = place_of(s, o);
            const bool first = p.first == at, second = p.second == at && p.share > 0;
            if (!first && !second) continue;
            const float g = to_f(line[o * s.inner]);
            if (first) sum += (1 - p.share) * g;
            if (second) sum += p.share * g;
        }
        dx[t] = to_value<T>(sum);
    }
}

stretch stretch_of(const keel_call *c)
{
    const keel_upsample_args *a = cuda_args<keel_upsample_args>(c);
    const keel_shape &in = c->node->in[0].shape;
    const int axis = (int)(a->axis < 0 ? a->axis + in.rank : a->axis);
    stretch s = { in.dim[axis], 1, a->factor, c->rows * keel_row_count(&c->node->in[0]),
                  a->between };
    for (int d = axis + 1; d < in.rank; d++) s.inner *= in.dim[d];
    return s;
}

template <class T> void forward(const keel_call *c)
{
    cuda_launch(c, forward_kernel<T>, cuda_blocks(cuda_count(c)), CUDA_THREADS, 0, cuda_out<T>(c),
                cuda_in<T>(c, 0), stretch_of(c));
}

template <class T> void backward(const keel_call *c)
{
    const stretch s = stretch_of(c);
    if (c->in_grad[0])
        cuda_launch(c, backward_kernel<T>, cuda_blocks(s.all), CUDA_THREADS, 0,
                    cuda_in_grad<T>(c, 0), cuda_out_grad<T>(c), s, c->in_adds[0]);
}
} // namespace

CUDA_KERNEL(upsample) = { .op = &keel_op_upsample,
                          .name = "cuda",
                          .prepare = cuda_always,
                          .run = { forward<float>, backward<float> },
                          .narrow = { forward<bf16>, backward<bf16> },
                          .half = { forward<f16>, backward<f16> } };
