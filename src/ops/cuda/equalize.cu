/* See ops/equalize.c. Numbers are counted by threads that take turns, which whole numbers allow;
 * one thread makes the table of a channel; then a thread has an element. */
#include "ops/cuda/_counts.h"
#include <math.h>
extern "C" {
#include "ops/equalize.h"
}

namespace
{
const int64_t BINS_MAX = 1 << 12; /* of tables that lie in scratch */

struct image {
    int64_t all, n, channels, bins; /* all: elements of the call; n: pixels */
    float scale, offset;            /* from values to 0 to 255 */
    double back, low;               /* and back */
};

/* A channel's: a count of each bin, or what it becomes, and whether only one has numbers. */
struct tables {
    unsigned *bin, *flat;
};

__device__ __forceinline__ float of_byte(const image &n, float x)
{
    return times(x, n.scale) + n.offset;
}

__device__ __forceinline__ int64_t bin_within(float x, int64_t bins)
{
    return x >= (float)(bins - 1) ? bins - 1 : x > 0 ? (int64_t)x : 0; /* 0 for NaN, too */
}

/* The channel of an element, of the call. */
__device__ __forceinline__ int64_t line_of(const image &n, int64_t t)
{
    int64_t row = t;
    const int64_t k = take(&row, n.channels);
    take(&row, n.n);
    return row * n.channels + k;
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    count_kernel(unsigned *bin, const T *x, const image n)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < n.all; t += step) {
        const float v = of_byte(n, to_f(x[t]));
        const int64_t b = bin_within(v * (float)(n.bins - 1) / 255.0f, n.bins);
        atomicAdd(bin + line_of(n, t) * n.bins + b, 1u);
    }
}

__global__ void __launch_bounds__(CUDA_THREADS)
    level_kernel(const tables to, int64_t lines, const image n)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < lines; t += step) {
        unsigned *bin = to.bin + t * n.bins;
        double first = 0, sum = 0;
        unsigned used = 0;
        for (int64_t b = 0; b < n.bins; b++) {
            if (first == 0) first = (double)bin[b];
            used += bin[b] != 0;
        }
        const double others = (double)n.n - first;
        for (int64_t b = 0; b < n.bins; b++) {
            sum += (double)bin[b];
            const double part = (sum - first) * 255 / (others > 0 ? others : 1);
            bin[b] = (unsigned)fmin(fmax(rint(part), 0.0), 255.0);
        }
        to.flat[t] = used <= 1;
    }
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    forward_kernel(T *y, const T *x, const tables of, const image n)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < n.all; t += step) {
        const int64_t line = line_of(n, t);
        const float v = of_byte(n, to_f(x[t]));
        const int64_t b = bin_within(v / 255.0f * (float)(n.bins - 1), n.bins);
        const double to = of.flat[line] ? (double)v : (double)of.bin[line * n.bins + b];
        y[t] = to_value<T>((float)(times(to, n.back) + n.low));
    }
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    backward_kernel(T *dx, const T *dy, const unsigned *flat, const image n, bool adds)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < n.all; t += step) {
        const float g = flat[line_of(n, t)] ? to_f(dy[t]) : 0;
        dx[t] = to_value<T>(adds ? to_f(dx[t]) + g : g);
    }
}

template <class T> tables tables_of(const keel_call *c, image *n)
{
    const keel_equalize_args *a = cuda_args<keel_equalize_args>(c);
    const int64_t *dim = c->node->in[0].shape.dim, lines = c->rows * dim[2];
    const double range = a->values.high - a->values.low, scale = 255 / range;
    unsigned *bin = static_cast<unsigned *>(c->scratch);
    const tables to = { bin, bin + lines * a->bins };
    *n = { cuda_count(c), dim[0] * dim[1], dim[2],
           a->bins,       (float)scale,    (float)(0 - a->values.low * scale),
           range / 255,   a->values.low };
    counts_clear(c, bin, lines * a->bins);
    cuda_launch(c, count_kernel<T>, cuda_blocks(n->all), CUDA_THREADS, 0, bin, cuda_in<T>(c, 0),
                *n);
    cuda_launch(c, level_kernel, cuda_blocks(lines), CUDA_THREADS, 0, to, lines, *n);
    return to;
}

template <class T> void forward(const keel_call *c)
{
    image n;
    const tables of = tables_of<T>(c, &n);
    cuda_launch(c, forward_kernel<T>, cuda_blocks(n.all), CUDA_THREADS, 0, cuda_out<T>(c),
                cuda_in<T>(c, 0), of, n);
}

template <class T> void backward(const keel_call *c)
{
    image n;
    if (!c->in_grad[0]) return;
    const tables of = tables_of<T>(c, &n);
    cuda_launch(c, backward_kernel<T>, cuda_blocks(n.all), CUDA_THREADS, 0, cuda_in_grad<T>(c, 0),
                cuda_out_grad<T>(c), of.flat, n, c->in_adds[0]);
}

keel_status prepare(keel_prepare *p)
{
    const int64_t bins = static_cast<const keel_equalize_args *>(p->node->args)->bins;
    const int64_t lines = p->rows * p->node->in[0].shape.dim[2];
    if (bins > BINS_MAX || keel_row_count(&p->node->in[0]) > UINT32_MAX) return KEEL_EUNSUP;
    return cuda_prepare(p, lines * (bins + 1) * (int64_t)sizeof(unsigned));
}
} // namespace

CUDA_KERNEL(equalize) = { .op = &keel_op_equalize,
                          .name = "cuda",
                          .prepare = prepare,
                          .run = { forward<float>, backward<float> },
                          .narrow = { forward<bf16>, backward<bf16> },
                          .half = { forward<f16>, backward<f16> } };
