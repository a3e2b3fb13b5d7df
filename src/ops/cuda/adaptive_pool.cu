/* See ops/adaptive_pool.c. */
#include "ops/cuda/_kernel.h"
extern "C" {
#include "ops/adaptive_pool.h"
}

namespace
{
struct windows {
    int64_t n, inner, size, lines; /* places along the axis, and how many windows they become */
    bool largest;

    __device__ __forceinline__ int64_t begin(int64_t i) const
    {
        return i * n / size;
    }
    __device__ __forceinline__ int64_t end(int64_t i) const
    {
        return ((i + 1) * n + size - 1) / size;
    }
};

/* Where the largest of window i is; of a line whose elements are `inner` apart. */
template <class T>
__device__ __forceinline__ int64_t largest_of(const windows &s, const T *line, int64_t i)
{
    int64_t most = s.begin(i);
    float best = to_f(line[most * s.inner]);
    for (int64_t t = most + 1; t < s.end(i); t++) {
        const float x = to_f(line[t * s.inner]);
        if (x <= best) continue; /* a NaN wins, and the last of several */
        best = x;
        most = t;
    }
    return most;
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    forward_kernel(T *y, const T *x, const windows s, int64_t all)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < all; t += step) {
        int64_t rest = t;
        const int64_t k = take(&rest, s.inner), i = take(&rest, s.size);
        const T *line = x + rest * s.n * s.inner + k;
        if (s.largest) {
            y[t] = line[largest_of(s, line, i) * s.inner];
            continue;
        }
        double sum = 0;
        for (int64_t p = s.begin(i); p < s.end(i); p++) sum += to_f(line[p * s.inner]);
        y[t] = to_value<T>((float)(sum / (double)(s.end(i) - s.begin(i))));
    }
}

/* An element of the input gathers from the windows that have it. */
template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    backward_kernel(T *dx, const T *x, const T *dy, const windows s, int64_t all, bool adds)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < all; t += step) {
        int64_t rest = t;
        const int64_t k = take(&rest, s.inner), at = take(&rest, s.n);
        const T *line = x + rest * s.n * s.inner + k, *g = dy + rest * s.size * s.inner + k;
        const int64_t last = ((at + 1) * s.size - 1) / s.n;
        float sum = adds ? to_f(dx[t]) : 0;
        for (int64_t i = at * s.size / s.n; i <= last && i < s.size; i++) {
            if (!s.largest)
                sum += to_f(g[i * s.inner]) / (float)(s.end(i) - s.begin(i));
            else if (largest_of(s, line, i) == at)
                sum += to_f(g[i * s.inner]);
        }
        dx[t] = to_value<T>(sum);
    }
}

windows windows_of(const keel_call *c)
{
    const keel_adaptive_pool_args *a = cuda_args<keel_adaptive_pool_args>(c);
    const keel_shape &in = c->node->in[0].shape;
    const int axis = (int)(a->axis < 0 ? a->axis + in.rank : a->axis);
    windows s = { in.dim[axis], 1, a->size, c->rows, a->largest };
    for (int d = 0; d < in.rank; d++) {
        if (d < axis) s.lines *= in.dim[d];
        if (d > axis) s.inner *= in.dim[d];
    }
    return s;
}

template <class T> void forward(const keel_call *c)
{
    const int64_t all = cuda_count(c);
    cuda_launch(c, forward_kernel<T>, cuda_blocks(all), CUDA_THREADS, 0, cuda_out<T>(c),
                cuda_in<T>(c, 0), windows_of(c), all);
}

template <class T> void backward(const keel_call *c)
{
    const windows s = windows_of(c);
    const int64_t all = s.lines * s.n * s.inner;
    if (c->in_grad[0])
        cuda_launch(c, backward_kernel<T>, cuda_blocks(all), CUDA_THREADS, 0, cuda_in_grad<T>(c, 0),
                    cuda_in<T>(c, 0), cuda_out_grad<T>(c), s, all, c->in_adds[0]);
}
} // namespace

CUDA_KERNEL(adaptive_pool) = { .op = &keel_op_adaptive_pool,
                               .name = "cuda",
                               .prepare = cuda_always,
                               .run = { forward<float>, backward<float> },
                               .narrow = { forward<bf16>, backward<bf16> },
                               .half = { forward<f16>, backward<f16> } };
