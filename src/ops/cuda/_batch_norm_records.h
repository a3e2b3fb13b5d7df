/* The records of batch normalisation, for each row and in both directions: see ops/batch_norm.c.
 *
 * A block has some threads' channels, of a piece of one row or of several small rows. As many
 * threads share the places that each has some dozens. Both, and how a row is cut into pieces,
 * depend on the type and the numbers of channels and places alone. Sums of pieces are added in
 * their order, by a launch of its own. */
#ifndef KEEL_OPS_CUDA_BATCH_NORM_RECORDS_H
#define KEEL_OPS_CUDA_BATCH_NORM_RECORDS_H
#include "ops/cuda/_batch_norm_facts.h"

/* AT_ONCE: places whose loads are under way together; of two arrays fewer, so that a
 * multiprocessor has registers for several blocks. */
static const int SUMS = 2, AT_ONCE = 4, BACK_AT_ONCE = 3;
static const int64_t PIECE_PLACES = 784, PIECES_MOST = 16, THREAD_PLACES = 24;

struct row_layout {
    int64_t rows, c, per_row, pieces;
    int64_t chunks, blocks; /* chunks: of a piece, each for a block */
    int lanes, lines; /* of a block, for a row: threads of a place; and of each, over places */
};

/* Where a thread of a block is. */
struct row_part {
    int64_t row, piece;
    int64_t first, end; /* places */
    int64_t k, n;       /* its first channel; how many there are from there on, or fewer than 1 */
    int line;           /* of the threads that share the places */
};

template <int N>
static __device__ __forceinline__ row_part part_of(const row_layout &l, int64_t block)
{
    const int t = (int)threadIdx.x, each = l.lanes * l.lines;
    row_part at = {};
    at.k = (take(&block, l.chunks) * l.lanes + t % l.lanes) * N;
    at.piece = take(&block, l.pieces);
    at.row = block * (CUDA_THREADS / each) + t / each;
    at.n = at.row < l.rows ? l.c - at.k : 0;
    at.first = at.piece * PIECE_PLACES;
    at.end = at.piece + 1 < l.pieces ? at.first + PIECE_PLACES : l.per_row;
    at.line = t / l.lanes % l.lines;
    return at;
}

/* Adds up what all threads have that share the places, at `to`, with a step of c from one sum to
 * the next. All threads call it. */
template <int N>
static __device__ __forceinline__ void over_lines(double *to, const double mine[SUMS * N],
                                                  double *room, const row_layout &l,
                                                  const row_part &at)
{
    add_lines<SUMS * N>(mine, room, l.lanes, l.lines, [&](int j, double sum) {
        if (j % N < at.n) to[j / N * l.c + j % N] = sum;
    });
}

/* The offsets of U places of a piece; those behind its end become the last one's. */
template <int U>
static __device__ __forceinline__ void offsets_of(int64_t at[U], const row_layout &l,
                                                  const row_part &part, int64_t first)
{
    UNROLL
    for (int u = 0; u < U; u++) {
        const int64_t place = first + u * l.lines;
        at[u] = (place < part.end ? place : part.end - 1) * l.c;
    }
}

/* Sums of what a thread's places have. In doubles they lose nothing that a float has. Values of 8
 * or 11 bits lose nothing either when those of a few places are floats first, which is faster. */
template <class T> struct few_of {
    typedef float type;
};
template <> struct few_of<float> {
    typedef double type;
};

template <int N, class F>
static __device__ __forceinline__ void add_few(double sum[SUMS * N], const F few[SUMS][N])
{
    UNROLL
    for (int e = 0; e < N; e++) {
        sum[e] += (double)few[0][e];
        sum[N + e] += (double)few[1][e];
    }
}

/* Which places count, and of each row, how many and the first. NULL: all do. */
template <class T> struct row_mask {
    const T *of; /* [rows][places] */
    const int64_t *counted, *first;
};

template <class T> static __device__ __forceinline__ bool is_counted(T x)
{
    return to_f(x) > 0.5f;
}

/* The sums about the value of the first place that counts, of values and of squares. */
template <class T, bool WIDE, bool MASKED>
static __global__ void __launch_bounds__(CUDA_THREADS, WIDE ? 2 : 1)
    partial_kernel(double *to, const T *in, const row_mask<T> mask, const row_layout l)
{
    typedef typename few_of<T>::type F;
    const int N = EACH<T>, U = AT_ONCE;
    SHARED(double, room, SUMS *EACH<T> *CUDA_THREADS);
    for (int64_t b = blockIdx.x; b < l.blocks; b += gridDim.x) {
        const row_part at = part_of<N>(l, b);
        const T *x = in + at.row * l.per_row * l.c + at.k;
        double sum[SUMS * N] = {};
        float pivot[N] = {};
        const int64_t pivots = MASKED && at.n > 0 ? mask.first[at.row] : 0;
        if (at.n > 0) unpack<N>(pivot, load_place<WIDE, N>(x + pivots * l.c, at.n));
        for (int64_t p = at.first + at.line; at.n > 0 && p < at.end; p += U * l.lines) {
            int64_t from[U];
            pack<T, N> v[U];
            bool counts[U];
            F few[SUMS][N] = {};
            offsets_of<U>(from, l, at, p);
            load_places<WIDE, U>(v, x, from, at.n);
            UNROLL
            for (int u = 0; u < U; u++) {
                const int64_t q = p + u * l.lines < at.end ? p + u * l.lines : at.end - 1;
                counts[u] = !MASKED || is_counted(mask.of[at.row * l.per_row + q]);
            }
            UNROLL
            for (int u = 0; u < U; u++) {
                const bool there = counts[u] && p + u * l.lines < at.end;
                float value[N];
                unpack<N>(value, v[u]);
                UNROLL
                for (int e = 0; e < N; e++) {
                    const F d = there ? (F)value[e] - (F)pivot[e] : 0;
                    few[0][e] += d;
                    few[1][e] = fma(d, d, few[1][e]);
                }
            }
            add_few<N>(sum, few);
        }
        over_lines<N>(to + (at.row * l.pieces + at.piece) * SUMS * l.c + at.k, sum, room, l, at);
    }
}

/* What belongs to a thread's channels. */
template <bool WIDE, int N>
static __device__ __forceinline__ void load_facts(float v[N], const float *from, int64_t n)
{
    UNROLL
    for (int i = 0; i < N; i += 4) {
        const pack<float, 4> x = load_place<WIDE, 4>(from + i, n - i);
        UNROLL
        for (int e = 0; e < 4; e++) v[i + e] = x.v[e];
    }
}

/* Channels of a thread: of eight with silu a multiprocessor would not have the registers. */
template <class T, bool SILU> static constexpr int BACK_EACH = SILU ? 4 : EACH<T>;

/* Sums of the gradient, and of its products with x - mean. The products are with x - the mean as a
 * float, and are put right at the end. given: of forward, for SILU. */
template <class T, bool WIDE, bool SILU>
static __global__ void __launch_bounds__(CUDA_THREADS, WIDE ? 2 : 1)
    partial_backward_kernel(double *to, const T *in, const T *out_grad, const uint8_t *bits,
                            const facts_args f, const facts given, int64_t bytes,
                            const row_layout l)
{
    typedef typename few_of<T>::type F;
    const int N = BACK_EACH<T, SILU>, U = BACK_AT_ONCE;
    SHARED(double, room, SUMS *N *CUDA_THREADS);
    for (int64_t b = blockIdx.x; b < l.blocks; b += gridDim.x) {
        const row_part at = part_of<N>(l, b);
        const int64_t first = at.row * l.per_row;
        const T *x = in + first * l.c + at.k, *dy = out_grad + first * l.c + at.k;
        const uint8_t *bit = bits ? bits + first * bytes + at.k / 8 : nullptr;
        double sum[SUMS * N] = {};
        float mean[N], scale[N], offset[N];
        UNROLL
        for (int e = 0; e < N; e++) mean[e] = e < at.n ? (float)mean_of(f, at.k + e) : 0;
        if (SILU && at.n > 0) {
            load_facts<WIDE, N>(scale, given.scale + at.k, at.n);
            load_facts<WIDE, N>(offset, given.offset + at.k, at.n);
        }
        for (int64_t p = at.first + at.line; at.n > 0 && p < at.end; p += U * l.lines) {
            int64_t from[U];
            pack<T, N> v[U], g[U];
            unsigned kept[U];
            F few[SUMS][N] = {};
            offsets_of<U>(from, l, at, p);
            load_places<WIDE, U>(v, x, from, at.n);
            load_places<WIDE, U>(g, dy, from, at.n);
            UNROLL
            for (int u = 0; u < U; u++) {
                const bool there = p + u * l.lines < at.end;
                const int64_t q = there ? p + u * l.lines : at.end - 1;
                const unsigned byte = bits ? bit[q * bytes] : 255u;
                kept[u] = there ? byte >> at.k % 8 : 0;
            }
            UNROLL
            for (int u = 0; u < U; u++) {
                float value[N], grad[N];
                unpack<N>(value, v[u]);
                unpack<N>(grad, g[u]);
                if (SILU) pass_silu<T, N>(grad, value, mean, scale, offset);
                UNROLL
                for (int e = 0; e < N; e++) {
                    const F passed = kept[u] >> e & 1 ? grad[e] : 0;
                    few[0][e] += passed;
                    few[1][e] = fma(passed, (F)value[e] - (F)mean[e], few[1][e]);
                }
            }
            add_few<N>(sum, few);
        }
        for (int e = 0; e < N; e++)
            if (e < at.n) sum[N + e] += ((double)mean[e] - mean_of(f, at.k + e)) * sum[e];
        over_lines<N>(to + (at.row * l.pieces + at.piece) * SUMS * l.c + at.k, sum, room, l, at);
    }
}

/* A row's sums of all pieces. */
struct row_sums {
    double of[SUMS];
};

static __device__ __forceinline__ row_sums over_pieces(const double *sums, const row_layout &l,
                                                       int64_t row, int64_t k)
{
    row_sums all = {};
    for (int64_t p = 0; p < l.pieces; p++)
        for (int s = 0; s < SUMS; s++)
            all.of[s] += sums[((row * l.pieces + p) * SUMS + s) * l.c + k];
    return all;
}

/* The mean, and the sum of squares about it. */
template <class T>
static __global__ void __launch_bounds__(CUDA_THREADS)
    mean_kernel(double *records, const double *sums, const T *in, const row_layout l)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS, n = l.rows * l.c;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < n; t += step) {
        int64_t row = t;
        const int64_t k = take(&row, l.c);
        const row_sums all = over_pieces(sums, l, row, k);
        const double mean = all.of[0] / (double)l.per_row;
        double *to = records + row * SUMS * l.c + k;
        to[0] = (double)to_f(in[row * l.per_row * l.c + k]) + mean;
        to[l.c] = fmax(all.of[1] - all.of[0] * mean, 0.0) + 0 * mean; /* NaN stays */
    }
}

static __global__ void __launch_bounds__(CUDA_THREADS)
    normalize_kernel(double *records, const double *sums, const facts_args f, const row_layout l)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS, n = l.rows * l.c;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < n; t += step) {
        int64_t row = t;
        const int64_t k = take(&row, l.c);
        const row_sums all = over_pieces(sums, l, row, k);
        double *to = records + row * SUMS * l.c + k;
        to[0] = all.of[0];
        to[l.c] = all.of[1] * norm_channel_of(f, k).invstd;
    }
}

/* each: channels of a thread. */
static row_layout layout_of(int64_t c, int64_t rows, int64_t per_row, int each)
{
    const int64_t groups = (c + each - 1) / each, pieces = per_row / PIECE_PLACES;
    const int most = per_row < PIECE_PLACES ? GPU_WARP : GPU_WARP / 2; /* else too few blocks */
    row_layout l = {};
    l.rows = rows;
    l.c = c;
    l.per_row = per_row;
    l.pieces = pieces < 1 ? 1 : pieces < PIECES_MOST ? pieces : PIECES_MOST;
    l.lanes = 4;
    while (l.lanes < most && l.lanes < groups) l.lanes *= 2;
    l.lines = 1;
    while (l.lines * l.lanes < CUDA_THREADS && 2 * l.lines * THREAD_PLACES <= per_row) l.lines *= 2;
    const int64_t together = CUDA_THREADS / (l.lanes * l.lines); /* rows of a block */
    l.chunks = (groups + l.lanes - 1) / l.lanes;
    l.blocks = (rows + together - 1) / together * l.pieces * l.chunks;
    return l;
}

static unsigned grid_of(const row_layout &l)
{
    return cuda_turns(l.blocks);
}

/* Bytes of scratch for the sums of pieces. */
static int64_t sums_bytes(int64_t c, int64_t rows, int64_t per_row)
{
    const row_layout l = layout_of(c, rows, per_row, 4);
    return rows * l.pieces * SUMS * c * (int64_t)sizeof(double);
}

template <class T> static void partial(const keel_call *c)
{
    const T *x = cuda_in<T>(c, 0);
    const int64_t n = channels_of(c->node);
    const row_layout l = layout_of(n, c->rows, keel_row_count(&c->node->in[0]) / n, EACH<T>);
    const bool wide = n % EACH<T> == 0 && fits_pack<EACH<T>>(x);
    double *sums = static_cast<double *>(c->scratch);
    cuda_launch(c, wide ? partial_kernel<T, true, false> : partial_kernel<T, false, false>,
                grid_of(l), CUDA_THREADS, 0, sums, x, row_mask<T>{}, l);
    cuda_launch(c, mean_kernel<T>, cuda_blocks(c->rows * n), CUDA_THREADS, 0, c->partial, sums, x,
                l);
}

/* The sums of `rows` rows of `per_row` places, which are those of the call. */
template <class T, bool SILU>
static row_layout sums_backward(const keel_call *c, double *sums, int64_t rows, int64_t per_row)
{
    const int N = BACK_EACH<T, SILU>;
    const T *x = cuda_in<T>(c, 0), *dy = cuda_out_grad<T>(c);
    const row_layout l = layout_of(channels_of(c->node), rows, per_row, N);
    const bool wide = l.c % N == 0 && fits_pack<N>(x) && fits_pack<N>(dy);
    const bool relu = cuda_args<keel_batch_norm_args>(c)->relu;
    const uint8_t *bits =
        relu && c->node->n_saved ? static_cast<const uint8_t *>(c->saved[0]) : nullptr;
    const facts given = SILU ? facts_of(c, false) : facts{};
    cuda_launch(
        c, wide ? partial_backward_kernel<T, true, SILU> : partial_backward_kernel<T, false, SILU>,
        grid_of(l), CUDA_THREADS, 0, sums, x, dy, bits, args_of(c), given,
        keel_batch_norm_bits(l.c), l);
    return l;
}

/* Their records. */
template <class T>
void records_backward(const keel_call *c, double *records, double *sums, int64_t rows,
                      int64_t per_row)
{
    const row_layout l = has_silu(c->node) ? sums_backward<T, true>(c, sums, rows, per_row)
                                           : sums_backward<T, false>(c, sums, rows, per_row);
    cuda_launch(c, normalize_kernel, cuda_blocks(rows * l.c), CUDA_THREADS, 0, records, sums,
                args_of(c), l);
}

template <class T> static void partial_backward(const keel_call *c)
{
    const int64_t n = channels_of(c->node);
    records_backward<T>(c, c->partial, sums_of(c), c->rows, keel_row_count(&c->node->in[0]) / n);
}

#endif
