/* The tiles of images at Winograd's points (_winograd_points.h): there and back, both directions
 * one after the other.
 *
 *     spread   6x6 places of an image, 4x4 of a gradient or the 3x3 taps of a filter become 6x6
 *              points
 *     gather   6x6 points become 4x4 places or 3x3 taps
 *
 * A thread has four channels of a tile. All loads of the tile are in flight together, for which it
 * has up to 255 registers. */
#ifndef KEEL_OPS_CUDA_WINOGRAD_TILES_H
#define KEEL_OPS_CUDA_WINOGRAD_TILES_H
#include "ops/cuda/_kernel.h"
#include "ops/cuda/_winograd_points.h"

static const int TILE_THREADS = 128; /* of a block: so that two have room on a multiprocessor */

/* Of an image of [h, w, c], where tile (i, j) has its places: from (4 i - top, 4 j - left) on. */
struct tiles {
    int h, w, c, top, left;
    int down, across; /* tiles of an image */
    int line, step;   /* elements from a place to that below it, and to that on its right */
    int64_t row;      /* elements of an image */
};

/* i % n, and *i becomes *i / n. */
static __device__ __forceinline__ int part(int *i, int n)
{
    const int whole = *i;
    *i = whole / n;
    return whole - *i * n;
}

/* The N x N places of a tile, of which those outside of the image do not exist. */
template <int N> struct window {
    int p, q, h, w, line, step, k; /* k: the first of the thread's channels */
    int64_t at;                    /* elements to the first place */

    __device__ __forceinline__ window(const tiles &a, int thread)
        : h(a.h), w(a.w), line(a.line), step(a.step)
    {
        int row = thread;
        k = part(&row, a.c / 4) * 4;
        const int j = part(&row, a.across), i = part(&row, a.down);
        p = TILE * i - a.top;
        q = TILE * j - a.left;
        at = row * a.row + (int64_t)p * a.line + (int64_t)q * a.step + k;
    }
    __device__ __forceinline__ bool has(int i, int j) const
    {
        return p + i >= 0 && p + i < h && q + j >= 0 && q + j < w;
    }
    __device__ __forceinline__ int64_t place(int i, int j) const
    {
        return at + (int64_t)i * line + (int64_t)j * step;
    }
};

/* to[points, tiles, c] = the transformed N x N places of tiles: columns first, then lines. */
template <int N>
static __global__ void __launch_bounds__(TILE_THREADS, 1)
    spread_kernel(float *to, const float *from, const tiles a, int threads)
{
    const int step = (int)gridDim.x * TILE_THREADS;
    const int64_t point = (int64_t)threads * 4;
    for (int t = (int)blockIdx.x * TILE_THREADS + (int)threadIdx.x; t < threads; t += step) {
        const window<N> at(a, t);
        float *out = to + (int64_t)t * 4;
        float half[4][SIDE][N];
        UNROLL
        for (int j = 0; j < N; j++) {
            pack<float, 4> d[N];
            UNROLL
            for (int i = 0; i < N; i++) {
                d[i] = pack<float, 4>();
                if (at.has(i, j)) d[i] = load_pack<4>(from + at.place(i, j));
            }
            UNROLL
            for (int e = 0; e < 4; e++) {
                float x[N], v[SIDE];
                UNROLL
                for (int i = 0; i < N; i++) x[i] = d[i].v[e];
                to_points(x, v);
                UNROLL
                for (int i = 0; i < SIDE; i++) half[e][i][j] = v[i];
            }
        }
        UNROLL
        for (int i = 0; i < SIDE; i++) {
            float v[4][SIDE];
            UNROLL
            for (int e = 0; e < 4; e++) to_points(half[e][i], v[e]);
            UNROLL
            for (int j = 0; j < SIDE; j++) {
                const float four[4] = { v[0][j], v[1][j], v[2][j], v[3][j] };
                store4(out + (SIDE * i + j) * point, four);
            }
        }
    }
}

/* The 6 points of a line, added up over parts in their order. */
template <bool PARTS>
static __device__ __forceinline__ void load_line(pack<float, 4> u[SIDE], const float *from,
                                                 int64_t point, int64_t each, int parts)
{
    UNROLL
    for (int j = 0; j < SIDE; j++) u[j] = load_pack<4>(from + j * point);
    for (int part = 1; PARTS && part < parts; part++) {
        pack<float, 4> more[SIDE];
        UNROLL
        for (int j = 0; j < SIDE; j++) more[j] = load_pack<4>(from + j * point + part * each);
        UNROLL
        for (int n = 0; n < SIDE * 4; n++) u[n / 4].v[n % 4] += more[n / 4].v[n % 4];
    }
}

/* What is added to column j of a tile: what is there, or a bias. */
template <int N, bool ADDS>
static __device__ __forceinline__ void load_terms(pack<float, 4> old[N], const float *from,
                                                  const pack<float, 4> &bias, const window<N> &at,
                                                  int j)
{
    UNROLL
    for (int i = 0; i < N; i++) {
        old[i] = bias;
        if (ADDS && at.has(i, j)) old[i] = load_pack<4>(from + at.place(i, j));
    }
}

/* The N x N places of tiles = from[points, parts, tiles, c] transformed back, with sums over parts;
 * a bias is added, or with ADDS what is there. */
template <int N, bool ADDS>
static __global__ void __launch_bounds__(TILE_THREADS, 1)
    gather_kernel(float *to, const float *from, const float *bias, const tiles a, int threads,
                  int parts)
{
    const int step = (int)gridDim.x * TILE_THREADS;
    const int64_t each = (int64_t)threads * 4, point = each * parts;
    for (int t = (int)blockIdx.x * TILE_THREADS + (int)threadIdx.x; t < threads; t += step) {
        const window<N> at(a, t);
        float half[4][N][SIDE];
        UNROLL
        for (int i = 0; i < SIDE; i++) {
            pack<float, 4> u[SIDE];
            load_line<N == TAPS>(u, from + (int64_t)t * 4 + SIDE * i * point, point, each, parts);
            UNROLL
            for (int e = 0; e < 4; e++) {
                float x[SIDE], y[N];
                UNROLL
                for (int j = 0; j < SIDE; j++) x[j] = u[j].v[e];
                from_points(x, y);
                UNROLL
                for (int j = 0; j < N; j++) half[e][j][i] = y[j];
            }
        }
        pack<float, 4> biases = {};
        UNROLL
        for (int e = 0; !ADDS && e < 4; e++)
            if (bias) biases.v[e] = bias[at.k + e];
        UNROLL
        for (int j = 0; j < N; j++) {
            pack<float, 4> old[N];
            float y[4][N];
            load_terms<N, ADDS>(old, to, biases, at, j);
            UNROLL
            for (int e = 0; e < 4; e++) from_points(half[e][j], y[e]);
            UNROLL
            for (int i = 0; i < N; i++) {
                const float *o = old[i].v;
                const float four[4] = { y[0][i] + o[0], y[1][i] + o[1], y[2][i] + o[2],
                                        y[3][i] + o[3] };
                if (at.has(i, j)) store4(to + at.place(i, j), four);
            }
        }
    }
}

#endif
