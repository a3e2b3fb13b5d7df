/* The sum of each column of [places, k] over all places, such as the gradient of a bias. A block's
 * threads share a piece of the places, and the sums of the pieces are added in their order. How the
 * places are cut depends on their type and on the numbers of places and columns alone. */
#ifndef KEEL_OPS_CUDA_PLACES_H
#define KEEL_OPS_CUDA_PLACES_H
#include "ops/cuda/_columns.h"
#include "ops/cuda/_packs.h"

static const int PLACES_AT_ONCE = 4, PLACES_OF_THREAD = 16; /* the latter at least */

struct places_layout {
    int64_t places, k, pieces, chunks; /* chunks: of the columns, each for a block */
    int lanes, lines;                  /* threads of a place; and of each, over places */
};

/* each: columns of a thread. */
static inline places_layout places_layout_of(int64_t places, int64_t k, int each)
{
    const int64_t groups = (k + each - 1) / each;
    places_layout l = { places, k, 1, 1, 1, 1 };
    while (l.lanes < GPU_WARP && l.lanes < groups) l.lanes *= 2;
    l.lines = CUDA_THREADS / l.lanes;
    l.chunks = (groups + l.lanes - 1) / l.lanes;
    const int64_t busy = CUDA_BLOCKS / 4 / l.chunks, most = busy > 16 ? busy : 16;
    l.pieces = places / (l.lines * PLACES_OF_THREAD);
    if (l.pieces < 1) l.pieces = 1;
    if (l.pieces > most) l.pieces = most;
    return l;
}

template <class T, bool WIDE>
static __global__ void __launch_bounds__(CUDA_THREADS, 2)
    places_kernel(double *to, const T *from, const places_layout l)
{
    const int N = EACH<T>, U = PLACES_AT_ONCE, t = (int)threadIdx.x;
    const int lane = t % l.lanes, line = t / l.lanes;
    SHARED(double, room, EACH<T> *CUDA_THREADS);
    for (int64_t b = blockIdx.x; b < l.pieces * l.chunks; b += gridDim.x) {
        int64_t piece = b;
        const int64_t k = (take(&piece, l.chunks) * l.lanes + lane) * N, n = l.k - k;
        const int64_t end = (piece + 1) * l.places / l.pieces;
        double sum[N] = {};
        for (int64_t p = piece * l.places / l.pieces + line; n > 0 && p < end; p += U * l.lines) {
            int64_t at[U];
            pack<T, N> v[U];
            UNROLL
            for (int u = 0; u < U; u++) {
                const int64_t place = p + u * l.lines;
                at[u] = (place < end ? place : end - 1) * l.k + k;
            }
            load_places<WIDE, U>(v, from, at, n);
            if (N == 4) {
                UNROLL
                for (int u = 0; u < U; u++) {
                    const bool there = p + u * l.lines < end;
                    UNROLL
                    for (int e = 0; e < N; e++) sum[e] += there ? (double)to_f(v[u].v[e]) : 0;
                }
                continue;
            }
            float few[N] = {}; /* narrow values: their sum loses nothing that they have */
            UNROLL
            for (int u = 0; u < U; u++) {
                float x[N];
                unpack<N>(x, v[u]);
                UNROLL
                for (int e = 0; e < N; e++) few[e] += p + u * l.lines < end ? x[e] : 0;
            }
            UNROLL
            for (int e = 0; e < N; e++) sum[e] += (double)few[e];
        }
        add_lines<N>(sum, room, l.lanes, l.lines, [&](int e, double all) {
            if (e < n) to[piece * l.k + k + e] = all;
        });
    }
}

/* Bytes of scratch for any type. */
static inline int64_t cuda_places_scratch(int64_t places, int64_t k)
{
    const int64_t fours = places_layout_of(places, k, EACH<float>).pieces;
    const int64_t eights = places_layout_of(places, k, EACH<bf16>).pieces;
    return (fours > eights ? fours : eights) * k * (int64_t)sizeof(double);
}

/* to = the sums of the columns of `from`, or +=. */
template <class T>
static void places_sum(const keel_call *c, float *to, const T *from, int64_t places, int64_t k,
                       bool adds, void *room)
{
    const places_layout l = places_layout_of(places, k, EACH<T>);
    const bool wide = k % EACH<T> == 0 && fits_pack<EACH<T>>(from);
    double *sums = static_cast<double *>(room);
    cuda_launch(c, wide ? places_kernel<T, true> : places_kernel<T, false>,
                cuda_turns(l.pieces * l.chunks), CUDA_THREADS, 0, sums, from, l);
    column_ends<1>(c, { { to } }, sums, k, l.pieces, adds);
}

#endif
