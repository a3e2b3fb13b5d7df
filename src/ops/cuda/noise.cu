/* See ops/noise.c. A thread has the four draws of a block of Philox. */
#include "ops/cuda/_chance.h"
#include "ops/cuda/_each.h"

namespace
{
struct noise {
    cuda_chance chance;
    int64_t count, groups, rows; /* elements of a row; its blocks of draws */
    double stddev;
    bool multiplies;
};

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    forward_kernel(T *y, float *factor, const T *x, const noise d)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < d.rows * d.groups;
         t += step) {
        int64_t row = t;
        const int64_t group = take(&row, d.groups), at = row * d.count + 4 * group;
        const int64_t left = d.count - 4 * group;
        unsigned word[4];
        double z[4];
        cuda_philox(word, d.chance, row, (unsigned)group);
        cuda_normals(z, word);
        for (int e = 0; e < 4; e++) {
            if (e >= left) break;
            const double draw = d.stddev * z[e], v = (double)to_f(x[at + e]);
            const float by = (float)(1 + draw);
            y[at + e] = to_value<T>(d.multiplies ? (float)v * by : (float)(v + draw));
            if (factor) factor[at + e] = by;
        }
    }
}

struct same {
    __device__ __forceinline__ float operator()(const float *x) const
    {
        return x[0];
    }
};

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    backward_kernel(T *dx, const T *dy, const float *factor, int64_t count, bool adds)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < count; t += step) {
        const float d = to_f(dy[t]) * factor[t];
        dx[t] = to_value<T>(adds ? to_f(dx[t]) + d : d);
    }
}

template <class T> void forward(const keel_call *c)
{
    const keel_noise_args *a = cuda_args<keel_noise_args>(c);
    T *y = cuda_out<T>(c);
    const T *x = cuda_in<T>(c, 0);
    if (!c->node->training) {
        if (y != x) each<1, T>(c, y, false, cuda_count(c), { x }, same{});
        return;
    }
    noise d = {};
    d.chance = cuda_chance_of(c);
    d.count = keel_row_count(&c->node->out[0]);
    d.groups = (d.count + 3) / 4;
    d.rows = c->rows;
    d.stddev = a->stddev;
    d.multiplies = a->multiplies;
    float *factor = c->node->n_saved ? static_cast<float *>(c->saved[0]) : nullptr;
    cuda_launch(c, forward_kernel<T>, cuda_blocks(d.rows * d.groups), CUDA_THREADS, 0, y, factor, x,
                d);
}

template <class T> void backward(const keel_call *c)
{
    const T *dy = cuda_out_grad<T>(c);
    T *dx = cuda_in_grad<T>(c, 0);
    if (!dx) return;
    if (c->node->n_saved)
        cuda_launch(c, backward_kernel<T>, cuda_blocks(cuda_count(c)), CUDA_THREADS, 0, dx, dy,
                    static_cast<const float *>(c->saved[0]), cuda_count(c), c->in_adds[0]);
    else
        each<1, T>(c, dx, c->in_adds[0], cuda_count(c), { dy }, same{});
}
} // namespace

CUDA_KERNEL(noise) = { .op = &keel_op_noise,
                       .name = "cuda",
                       .prepare = cuda_always,
                       .run = { forward<float>, backward<float> },
                       .narrow = { forward<bf16>, backward<bf16> },
                       .half = { forward<f16>, backward<f16> } };
