/* Lines of keys in ascending order, all of a line different, so that there is one order and nothing
 * of it depends on threads. Tiles are sorted in shared memory; then two neighbouring runs become
 * one, until one is left: a key goes to its place among its own and the smaller ones of the other
 * run. */
#ifndef KEEL_OPS_CUDA_SORT_H
#define KEEL_OPS_CUDA_SORT_H
#include "ops/cuda/_kernel.h"

static const int SORT_TILE = 2 * CUDA_THREADS;

/* Bitonic: a thread has a pair of each stage. A block has a tile of a line of n keys. */
static __global__ void __launch_bounds__(CUDA_THREADS)
    tiles_kernel(uint64_t *all, int64_t n, int64_t tiles)
{
    SHARED(uint64_t, tile, SORT_TILE);
    int64_t line = blockIdx.x;
    const int64_t first = take(&line, tiles) * SORT_TILE;
    uint64_t *keys = all + line * n;
    for (int i = (int)threadIdx.x; i < SORT_TILE; i += CUDA_THREADS)
        tile[i] = first + i < n ? keys[first + i] : UINT64_MAX;
    for (int run = 2; run <= SORT_TILE; run *= 2)
        for (int apart = run / 2; apart > 0; apart /= 2) {
            __syncthreads();
            const int low = (int)threadIdx.x % apart;
            const int a = ((int)threadIdx.x - low) * 2 + low, b = a + apart;
            const bool up = (a & run) == 0;
            const uint64_t x = tile[a], y = tile[b];
            if ((x > y) == up) tile[a] = y, tile[b] = x;
        }
    __syncthreads();
    for (int i = (int)threadIdx.x; i < SORT_TILE; i += CUDA_THREADS)
        if (first + i < n) keys[first + i] = tile[i];
}

/* How many of the n ascending keys are smaller. */
static __device__ __forceinline__ int64_t sort_smaller(const uint64_t *keys, int64_t n, uint64_t x)
{
    int64_t from = 0;
    while (n > 0) {
        const int64_t half = n / 2;
        if (keys[from + half] < x) {
            from += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return from;
}

/* Runs of `run` keys, a power of two, become runs of twice as many. */
static __global__ void __launch_bounds__(CUDA_THREADS)
    merge_kernel(uint64_t *all_to, const uint64_t *all_from, int64_t n, int64_t lines, int64_t run)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < n * lines; t += step) {
        int64_t line = t;
        const int64_t i = lines > 1 ? take(&line, n) : t;
        const int64_t begin = t - i, own = i & -run, other = own ^ run, both = own & ~run;
        const int64_t left = n - other < run ? n - other : run; /* of the other run; none: <= 0 */
        const uint64_t *from = all_from + begin;
        all_to[begin + both + (i - own) + sort_smaller(from + other, left, from[i])] = from[i];
    }
}

/* Blocks, of which a grid has up to INT32_MAX. */
static inline int64_t sort_blocks(int64_t n, int64_t lines)
{
    return (n + SORT_TILE - 1) / SORT_TILE * lines;
}

/* Bytes of scratch for n keys. */
static inline int64_t sort_scratch(int64_t n)
{
    return 2 * n * (int64_t)sizeof(uint64_t);
}

/* Sorts each of the lines of n keys that scratch begins with. Returns where they are then. */
static inline const uint64_t *sort_keys(const keel_call *c, uint64_t *scratch, int64_t n,
                                        int64_t lines = 1)
{
    uint64_t *from = scratch, *to = scratch + n * lines;
    const int64_t tiles = (n + SORT_TILE - 1) / SORT_TILE;
    cuda_launch(c, tiles_kernel, (unsigned)sort_blocks(n, lines), CUDA_THREADS, 0, from, n, tiles);
    for (int64_t run = SORT_TILE; run < n; run *= 2) {
        uint64_t *const now = from;
        cuda_launch(c, merge_kernel, cuda_blocks(n * lines), CUDA_THREADS, 0, to, now, n, lines,
                    run);
        from = to;
        to = now;
    }
    return from;
}

#endif
