/* Sums over places of columns that are neighbours, such as the gradient of gamma over all rows. A
 * block has a warp of columns, and its threads share the places. Many places are cut into pieces,
 * as many as their number says, and the sums of the pieces are added in their order. */
#ifndef KEEL_OPS_CUDA_COLUMNS_H
#define KEEL_OPS_CUDA_COLUMNS_H
#include "ops/cuda/_kernel.h"

static const int PLACES = CUDA_THREADS / GPU_WARP; /* threads that share the places of a column */

/* The sum over all threads that have one column of a block, in one order; all threads call it.
 */
static __device__ __forceinline__ double over_places(double mine, double *room)
{
    room[threadIdx.x] = mine;
    __syncthreads();
    double sum = 0;
    for (int p = 0; p < PLACES; p++) sum += room[p * GPU_WARP + (int)threadIdx.x % GPU_WARP];
    __syncthreads();
    return sum;
}

/* As many as keep a large GPU busy with n columns, and at least 64 of many places. */
static inline int64_t column_pieces(int64_t places, int64_t n)
{
    const int64_t chunks = (n + GPU_WARP - 1) / GPU_WARP, pieces = (places + 127) / 128;
    const int64_t busy = CUDA_BLOCKS / 4 / chunks, most = busy > 64 ? busy : 64;
    return pieces < most ? pieces : most;
}

/* Bytes of scratch for n columns with N sums each. */
static inline int64_t column_scratch(int64_t places, int64_t n, int sums)
{
    return column_pieces(places, n) * n * sums * (int64_t)sizeof(double);
}

/* f(place, column, sum) adds to the N sums of a column. */
template <int N, class F>
static __global__ void __launch_bounds__(CUDA_THREADS)
    columns_kernel(double *to, int64_t places, int64_t n, int64_t pieces, int64_t chunks, const F f)
{
    SHARED(double, room, CUDA_THREADS);
    const int first = (int)threadIdx.x / GPU_WARP;
    for (int64_t b = blockIdx.x; b < pieces * chunks; b += gridDim.x) {
        const int64_t piece = b / chunks, k = b % chunks * GPU_WARP + threadIdx.x % GPU_WARP;
        const int64_t begin = piece * places / pieces, end = (piece + 1) * places / pieces;
        double sum[N];
        for (int s = 0; s < N; s++) sum[s] = 0;
        for (int64_t p = begin + first; k < n && p < end; p += PLACES) f(p, k, sum);
        for (int s = 0; s < N; s++) {
            const double all = over_places(sum[s], room);
            if (first == 0 && k < n) to[(piece * N + s) * n + k] = all;
        }
    }
}

template <int N> struct column_results {
    float *at[N]; /* NULL: not wanted */
};

static const int ENDS = 8; /* columns of a block; its other threads share the pieces */

template <int N>
static __global__ void __launch_bounds__(CUDA_THREADS)
    column_ends_kernel(const column_results<N> to, const double *from, int64_t n, int64_t pieces,
                       int64_t chunks, bool adds)
{
    SHARED(double, room, CUDA_THREADS);
    const int lane = (int)threadIdx.x % ENDS, first = (int)threadIdx.x / ENDS;
    for (int64_t b = blockIdx.x; b < chunks * N; b += gridDim.x) {
        const int64_t s = b / chunks, k = b % chunks * ENDS + lane;
        double sum = 0;
        for (int64_t p = first; k < n && p < pieces; p += CUDA_THREADS / ENDS)
            sum += from[(p * N + s) * n + k];
        room[threadIdx.x] = sum;
        __syncthreads();
        float *at = nullptr;
        for (int i = 0; i < N; i++)
            if (s == i && first == 0 && k < n) at = to.at[i];
        if (at) {
            for (int l = 1; l < CUDA_THREADS / ENDS; l++) sum += room[l * ENDS + lane];
            at[k] = (float)sum + (adds ? at[k] : 0);
        }
        __syncthreads(); /* room is used again */
    }
}

/* The last step: to = the sums of pieces [pieces, N, n], or +=. */
template <int N>
static void column_ends(const keel_call *c, const column_results<N> &to, const double *from,
                        int64_t n, int64_t pieces, bool adds)
{
    const int64_t chunks = (n + ENDS - 1) / ENDS;
    cuda_launch(c, column_ends_kernel<N>, cuda_turns(chunks * N), CUDA_THREADS, 0, to, from, n,
                pieces, chunks, adds);
}

/* to = the sums of the columns, or +=, as the call's weight gradients, with f by such a kernel.
 * Needs column_scratch. */
template <int N, class F>
static void column_sums(const keel_call *c, const column_results<N> &to, int64_t places, int64_t n,
                        void (*kernel)(double *, int64_t, int64_t, int64_t, int64_t, F), const F &f)
{
    const int64_t chunks = (n + GPU_WARP - 1) / GPU_WARP, pieces = column_pieces(places, n);
    double *room = static_cast<double *>(c->scratch);
    cuda_launch(c, kernel, cuda_turns(chunks * pieces), CUDA_THREADS, 0, room, places, n, pieces,
                chunks, f);
    column_ends<N>(c, to, room, n, pieces, c->weight_adds);
}

template <int N, class F>
static void columns(const keel_call *c, const column_results<N> &to, int64_t places, int64_t n, F f)
{
    column_sums<N, F>(c, to, places, n, columns_kernel<N, F>, f);
}

/* ---- four columns a thread --------------------------------------------------------------------
 */

static const int FOURS = GPU_WARP / 4; /* threads that have a warp of columns */
static const int FOURS_PLACES = CUDA_THREADS / FOURS;

/* f(place, column, sum) adds to the N sums of four neighbouring columns, of which the last may not
 * exist. */
template <int N, class F>
static __global__ void __launch_bounds__(CUDA_THREADS)
    fours_kernel(double *to, int64_t places, int64_t n, int64_t pieces, int64_t chunks, const F f)
{
    const int PITCH = GPU_WARP + 1;
    SHARED(double, room, N *FOURS_PLACES *(GPU_WARP + 1));
    const int lane = (int)threadIdx.x % FOURS, first = (int)threadIdx.x / FOURS;
    for (int64_t b = blockIdx.x; b < pieces * chunks; b += gridDim.x) {
        const int64_t piece = b / chunks, k0 = b % chunks * GPU_WARP, k = k0 + 4 * lane;
        const int64_t begin = piece * places / pieces, end = (piece + 1) * places / pieces;
        double sum[N][4];
        for (int i = 0; i < N * 4; i++) sum[i / 4][i % 4] = 0;
        for (int64_t p = begin + first; k < n && p < end; p += FOURS_PLACES) f(p, k, sum);
        for (int i = 0; i < N * 4; i++)
            room[(i / 4 * FOURS_PLACES + first) * PITCH + 4 * lane + i % 4] = sum[i / 4][i % 4];
        __syncthreads();
        const int s = (int)threadIdx.x / GPU_WARP, column = (int)threadIdx.x % GPU_WARP;
        if (s < N && k0 + column < n) {
            double all = 0;
            for (int p = 0; p < FOURS_PLACES; p++)
                all += room[(s * FOURS_PLACES + p) * PITCH + column];
            to[(piece * N + s) * n + k0 + column] = all;
        }
        __syncthreads(); /* room is used again */
    }
}

template <int N, class F>
static void column_fours(const keel_call *c, const column_results<N> &to, int64_t places, int64_t n,
                         F f)
{
    column_sums<N, F>(c, to, places, n, fours_kernel<N, F>, f);
}

#endif
