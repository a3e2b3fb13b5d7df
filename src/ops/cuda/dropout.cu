/* See ops/dropout.c. A thread has the four draws of a block of Philox, or, where elements share
 * draws, one element. */
#include "ops/cuda/_chance.h"
#include "ops/cuda/_each.h"

namespace
{
struct drops {
    cuda_chance chance;
    int64_t count, groups, all; /* elements of a row; blocks of draws of a row; threads */
    unsigned first, least;
    float scale;
    bool wide;
    int rank; /* of the noise; 0: each element has its own draw */
    int64_t dim[KEEL_RANK_MAX], noise[KEEL_RANK_MAX];
};

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    own_draws_kernel(T *y, uint8_t *mask, const T *x, const drops d)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < d.all; t += step) {
        int64_t row = t;
        const int64_t group = take(&row, d.groups), n = d.count - 4 * group;
        const int64_t at = row * d.count + 4 * group;
        unsigned word[4];
        float v[4];
        four<uint8_t> kept;
        cuda_philox(word, d.chance, row, d.first / 4 + (unsigned)group);
        load_some(v, x + at, n, d.wide);
        for (int e = 0; e < 4; e++) {
            kept.v[e] = word[e] >> 8 >= d.least;
            v[e] = kept.v[e] ? v[e] * d.scale : 0;
        }
        store_some(y + at, v, n, d.wide);
        if (d.wide) {
            gpu_aligned(mask + at, sizeof kept);
            *reinterpret_cast<four<uint8_t> *>(mask + at) = kept;
        } else {
            for (int e = 0; e < 4; e++)
                if (e < n) mask[at + e] = kept.v[e];
        }
    }
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    shared_draws_kernel(T *y, uint8_t *mask, const T *x, const drops d)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < d.all; t += step) {
        int64_t row = t, rest, draw = 0, stride = 1;
        rest = take(&row, d.count);
        if (d.rank == 0) draw = rest;
        for (int i = d.rank - 1; i >= 0; i--) {
            const int64_t k = take(&rest, d.dim[i]);
            if (d.noise[i] != 1) draw += k * stride;
            stride *= d.noise[i];
        }
        const unsigned number = d.first + (unsigned)draw;
        unsigned word[4];
        cuda_philox(word, d.chance, row, number / 4);
        const bool kept = cuda_chosen(word, number % 4) >> 8 >= d.least;
        mask[t] = kept;
        y[t] = to_value<T>(kept ? to_f(x[t]) * d.scale : 0);
    }
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    backward_kernel(T *dx, const T *dy, const uint8_t *mask, float scale, int64_t count, bool wide,
                    bool adds)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; 4 * t < count; t += step) {
        const int64_t n = count - 4 * t;
        float g[4], kept[4], old[4] = { 0, 0, 0, 0 };
        load_some(g, dy + 4 * t, n, wide);
        load_some(kept, mask + 4 * t, n, wide);
        if (adds) load_some(old, dx + 4 * t, n, wide);
        for (int e = 0; e < 4; e++) g[e] = old[e] + (kept[e] != 0 ? g[e] * scale : 0);
        store_some(dx + 4 * t, g, n, wide);
    }
}

struct same {
    __device__ __forceinline__ float operator()(const float *x) const
    {
        return x[0];
    }
};

float scale_of(const keel_call *c)
{
    const double rate = cuda_args<keel_dropout_args>(c)->rate;
    return (float)(rate < 1 ? 1 / (1 - rate) : 0);
}

drops drops_of(const keel_call *c)
{
    const keel_dropout_args *a = cuda_args<keel_dropout_args>(c);
    drops d = {};
    d.chance = cuda_chance_of(c);
    d.count = keel_row_count(&c->node->out[0]);
    d.groups = (d.count + 3) / 4;
    d.first = a->first;
    d.least = cuda_least(a->rate);
    d.scale = scale_of(c);
    d.rank = a->noise.rank;
    for (int i = 0; i < d.rank; i++) {
        d.dim[i] = c->node->out[0].shape.dim[i];
        d.noise[i] = a->noise.dim[i];
    }
    d.all = c->rows * (d.rank == 0 && a->first % 4 == 0 ? d.groups : d.count);
    return d;
}

template <class T> void forward(const keel_call *c)
{
    T *y = cuda_out<T>(c);
    const T *x = cuda_in<T>(c, 0);
    if (!c->node->training) {
        if (y != x) each<1, T>(c, y, false, cuda_count(c), { x }, same{});
        return;
    }
    drops d = drops_of(c);
    uint8_t *mask = static_cast<uint8_t *>(c->saved[0]);
    d.wide = d.count % 4 == 0 && wide4(x) && wide4(y) && wide4(mask);
    if (d.rank == 0 && d.first % 4 == 0)
        cuda_launch(c, own_draws_kernel<T>, cuda_blocks(d.all), CUDA_THREADS, 0, y, mask, x, d);
    else
        cuda_launch(c, shared_draws_kernel<T>, cuda_blocks(d.all), CUDA_THREADS, 0, y, mask, x, d);
}

template <class T> void backward(const keel_call *c)
{
    const T *dy = cuda_out_grad<T>(c);
    T *dx = cuda_in_grad<T>(c, 0);
    const int64_t count = cuda_count(c);
    if (!dx) return;
    if (!c->node->training) {
        each<1, T>(c, dx, c->in_adds[0], count, { dy }, same{});
        return;
    }
    const uint8_t *mask = static_cast<const uint8_t *>(c->saved[0]);
    cuda_launch(c, backward_kernel<T>, cuda_blocks((count + 3) / 4), CUDA_THREADS, 0, dx, dy, mask,
                scale_of(c), count, wide4(dx) && wide4(dy) && wide4(mask), c->in_adds[0]);
}
} // namespace

CUDA_KERNEL(dropout) = { .op = &keel_op_dropout,
                         .name = "cuda",
                         .prepare = cuda_always,
                         .run = { forward<float>, backward<float> },
                         .narrow = { forward<bf16>, backward<bf16> },
                         .half = { forward<f16>, backward<f16> } };
