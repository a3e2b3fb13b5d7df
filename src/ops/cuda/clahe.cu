/* See ops/clahe.c. The pixels of each tile are counted; a thread makes the table of a tile, in the
 * host's order; then a thread has an element. */
#include "ops/cuda/_counts.h"
#include "ops/cuda/_move.h"
extern "C" {
#include "ops/clahe.h"
}

namespace
{
const int BINS = 256;

struct image {
    int64_t rows, dim[3], grid[2], side[2]; /* side: of a tile */
    float low, high, limit;                 /* limit: of a bin; <= 0: none */

    __device__ __forceinline__ int64_t tiles() const
    {
        return grid[0] * grid[1];
    }
};

/* The bin of a value; 0 for NaN, too. */
__device__ __forceinline__ int bin_of(const image &n, float x)
{
    const float v = n.low == 0 && n.high == 255 ? x : (x - n.low) / (n.high - n.low) * 255.0f;
    return v >= 255 ? 255 : v > 0 ? (int)v : 0;
}

/* A thread has a place of the grid, of all channels: beyond the border it sees a mirror. */
template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    count_kernel(unsigned *bins, const T *x, const image n)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    const int64_t down = n.grid[0] * n.side[0], across = n.grid[1] * n.side[1];
    const int64_t all = n.rows * n.dim[2] * down * across;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < all; t += step) {
        int64_t row = t;
        const int64_t k = take(&row, n.dim[2]);
        int64_t j = take(&row, across), i = take(&row, down);
        const int64_t line = row * n.dim[2] + k;
        int64_t tile_i = i, tile_j = j;
        take(&tile_i, n.side[0]);
        take(&tile_j, n.side[1]);
        i = i < n.dim[0] ? i : 2 * n.dim[0] - 1 - i;
        j = j < n.dim[1] ? j : 2 * n.dim[1] - 1 - j;
        const float v = to_f(x[((row * n.dim[0] + i) * n.dim[1] + j) * n.dim[2] + k]);
        const int64_t tile = line * n.tiles() + tile_i * n.grid[1] + tile_j;
        atomicAdd(bins + tile * BINS + bin_of(n, v), 1u);
    }
}

/* What values become, as the bits of a float, in place of the counts. */
__global__ void __launch_bounds__(CUDA_THREADS)
    level_kernel(unsigned *bins, int64_t tiles, const image n)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < tiles; t += step) {
        unsigned *bin = bins + t * BINS;
        float over = 0, sum = 0, least = 0;
        for (int b = 0; n.limit > 0 && b < BINS; b++) {
            const float count = (float)bin[b];
            over += count - fminf(count, n.limit);
        }
        for (int b = 0; b < BINS; b++) {
            const float count = (float)bin[b];
            sum += (n.limit > 0 ? fminf(count, n.limit) : count) + over / BINS;
            if (b == 0) least = sum;
            bin[b] = __float_as_uint(sum);
        }
        const float others = (float)(n.side[0] * n.side[1]) - least;
        for (int b = 0; b < BINS; b++) {
            const float v = (__uint_as_float(bin[b]) - least) * 255.0f / (others == 0 ? 1 : others);
            bin[b] = __float_as_uint(v < 0 ? 0 : v > 255 ? 255 : v);
        }
    }
}

/* The tiles whose middles lie around place i, and the share of the second. */
struct around {
    int64_t first, second;
    float share;
};

__device__ __forceinline__ around around_of(int64_t i, int64_t side, int64_t tiles)
{
    const float at = ((float)i - (float)side / 2.0f) / (float)side + 1.0f, first = floorf(at);
    const int64_t t = (int64_t)first - 1;
    return { t < 0 ? 0 : t, t + 1 < tiles ? t + 1 : tiles - 1, at - first };
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    forward_kernel(T *y, const T *x, const unsigned *bins, const image n)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    const int64_t all = n.rows * n.dim[0] * n.dim[1] * n.dim[2];
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < all; t += step) {
        int64_t row = t;
        const int64_t k = take(&row, n.dim[2]), j = take(&row, n.dim[1]), i = take(&row, n.dim[0]);
        const around down = around_of(i, n.side[0], n.grid[0]);
        const around to = around_of(j, n.side[1], n.grid[1]);
        const unsigned *own =
            bins + (row * n.dim[2] + k) * n.tiles() * BINS + bin_of(n, to_f(x[t]));
        const unsigned *top = own + down.first * n.grid[1] * BINS;
        const unsigned *bottom = own + down.second * n.grid[1] * BINS;
        const float above = __uint_as_float(top[to.first * BINS]) * (1 - to.share) +
                            __uint_as_float(top[to.second * BINS]) * to.share;
        const float below = __uint_as_float(bottom[to.first * BINS]) * (1 - to.share) +
                            __uint_as_float(bottom[to.second * BINS]) * to.share;
        const float v = above * (1 - down.share) + below * down.share;
        const bool bytes = n.low == 0 && n.high == 255;
        y[t] = to_value<T>(bytes ? v : v / 255.0f * (n.high - n.low) + n.low);
    }
}

image image_of(const keel_node *node, int64_t rows)
{
    const keel_clahe_args *a = static_cast<const keel_clahe_args *>(node->args);
    const int64_t *dim = node->in[0].shape.dim;
    image n = {};
    n.rows = rows;
    n.low = (float)a->values.low;
    n.high = (float)a->values.high;
    for (int d = 0; d < 3; d++) n.dim[d] = dim[d];
    for (int d = 0; d < 2; d++) {
        n.grid[d] = a->grid[d];
        n.side[d] = (dim[d] + a->grid[d] - 1) / a->grid[d];
    }
    n.limit = (float)(a->clip_limit * (double)(n.side[0] * n.side[1]) / BINS);
    return n;
}

template <class T> void forward(const keel_call *c)
{
    const image n = image_of(c->node, c->rows);
    const int64_t tiles = n.rows * n.dim[2] * n.grid[0] * n.grid[1];
    unsigned *bins = static_cast<unsigned *>(c->scratch);
    counts_clear(c, bins, tiles * BINS);
    cuda_launch(c, count_kernel<T>, cuda_blocks(tiles * n.side[0] * n.side[1]), CUDA_THREADS, 0,
                bins, cuda_in<T>(c, 0), n);
    cuda_launch(c, level_kernel, cuda_blocks(tiles), CUDA_THREADS, 0, bins, tiles, n);
    cuda_launch(c, forward_kernel<T>, cuda_blocks(cuda_count(c)), CUDA_THREADS, 0, cuda_out<T>(c),
                cuda_in<T>(c, 0), bins, n);
}

template <class T> void backward(const keel_call *c)
{
    no_gradient<T>(c, 0);
}

keel_status prepare(keel_prepare *p)
{
    const image n = image_of(p->node, p->rows);
    const int64_t bins = n.rows * n.dim[2] * n.grid[0] * n.grid[1] * BINS;
    return cuda_prepare(p, p->pass == KEEL_FORWARD ? bins * (int64_t)sizeof(unsigned) : 0);
}
} // namespace

CUDA_KERNEL(clahe) = { .op = &keel_op_clahe,
                       .name = "cuda",
                       .prepare = prepare,
                       .run = { forward<float>, backward<float> },
                       .narrow = { forward<bf16>, backward<bf16> },
                       .half = { forward<f16>, backward<f16> } };
