/* See ops/batch_norm.c. Records are sums of doubles in one order of places. A thread has the same
 * channels of every place that it comes to, so it reads what belongs to them once. They are as many
 * as 16 bytes hold, eight or four, and those of some places are loaded together: with one load at a
 * time, records ran at a quarter of an H200's memory. */
#include "ops/cuda/_packs.h"

namespace
{
struct facts_args {
    const double *merged, *forward; /* NULL: moving statistics */
    const float *gamma, *beta, *mean, *variance, *renorm_mean, *renorm_stddev;
    double epsilon, per_row, r_min, r_max, d_max;
    bool renorm;
    int64_t c;
};

/* What a thread needs of each channel: y = (x - mean) scale + offset, and
 * dx = slope (dy - a - (x - mean) b). */
struct facts {
    float *mean, *scale, *offset; /* slope is scale */
    float *a, *b;
};

bool meets(const keel_node *n)
{
    return n->partial > 0;
}

int64_t channels_of(const keel_node *n)
{
    return n->in[0].shape.dim[n->in[0].shape.rank - 1];
}

facts_args args_of(const keel_call *c)
{
    const keel_batch_norm_args *a = cuda_args<keel_batch_norm_args>(c);
    const keel_node *n = c->node;
    const int moving = a->scale + a->center;
    const float *const *w = reinterpret_cast<const float *const *>(c->weight);
    facts_args f = {};
    f.c = channels_of(n);
    f.per_row = (double)(keel_row_count(&n->in[0]) / f.c);
    f.epsilon = a->epsilon;
    f.gamma = a->scale ? w[0] : nullptr;
    f.beta = a->center ? w[a->scale] : nullptr;
    f.mean = w[moving];
    f.variance = w[moving + 1];
    if (!meets(n)) return f;
    f.merged = c->merged;
    f.forward = c->merged_forward ? c->merged_forward : c->merged;
    f.renorm = a->renorm.on;
    if (!f.renorm) return f;
    f.renorm_mean = w[moving + 3];
    f.renorm_stddev = w[moving + 4];
    f.r_min = a->renorm.r_min;
    f.r_max = a->renorm.r_max;
    f.d_max = a->renorm.d_max;
    return f;
}

struct channel {
    double mean, invstd, r, d;
};

__device__ __forceinline__ double mean_of(const facts_args &f, int64_t k)
{
    return f.forward ? f.forward[1 + k] : (double)f.mean[k];
}

__device__ channel channel_of(const facts_args &f, int64_t k)
{
    channel h = { 0, 0, 1, 0 };
    double variance;
    h.mean = mean_of(f, k);
    if (f.forward)
        variance = f.forward[1 + f.c + k] / (f.forward[0] * f.per_row);
    else
        variance = f.variance[k];
    h.invstd = 1 / sqrt(variance + f.epsilon);
    if (!f.renorm) return h;
    const double deviation = fmax((double)f.renorm_stddev[k], sqrt(f.epsilon));
    h.r = fmin(fmax(1 / h.invstd / deviation, f.r_min), f.r_max);
    h.d = fmin(fmax((h.mean - f.renorm_mean[k]) / deviation, -f.d_max), f.d_max);
    return h;
}

__global__ void __launch_bounds__(CUDA_THREADS)
    facts_kernel(const facts_args f, const facts to, bool backward)
{
    const int64_t k = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x;
    if (k >= f.c) return;
    const channel h = channel_of(f, k);
    const double gamma = f.gamma ? f.gamma[k] : 1.0, scale = h.invstd * gamma * h.r;
    const float mean = (float)h.mean;
    to.mean[k] = mean;
    to.scale[k] = (float)scale;
    if (backward) {
        const double total = f.forward ? f.merged[0] * f.per_row : 1;
        const double a = f.forward ? f.merged[1 + k] / total : 0;
        const double b = f.forward ? f.merged[1 + f.c + k] / total * h.invstd : 0;
        to.a[k] = (float)(a + (mean - h.mean) * b); /* x - mean of a rounded mean */
        to.b[k] = (float)b;
    } else {
        to.offset[k] = (float)(gamma * h.d + (f.beta ? f.beta[k] : 0.0) + (mean - h.mean) * scale);
    }
}

facts facts_of(const keel_call *c, bool backward)
{
    const facts_args f = args_of(c);
    float *room = static_cast<float *>(c->scratch);
    const facts to = { room, room + f.c, room + 2 * f.c, room + 3 * f.c, room + 4 * f.c };
    if (c->rows > 0)
        cuda_launch(c, facts_kernel, cuda_blocks(f.c), CUDA_THREADS, 0, f, to, backward);
    return to;
}

template <int N, class T>
__device__ __forceinline__ void add_place(float v[N], const pack<T, N> &more)
{
    float x[N];
    unpack<N>(x, more);
    UNROLL
    for (int e = 0; e < N; e++) v[e] += x[e];
}

/* What belongs to a thread's channels. */
template <bool WIDE, int N>
__device__ __forceinline__ void load_facts(float v[N], const float *from, int64_t n)
{
    UNROLL
    for (int i = 0; i < N; i += 4) {
        const pack<float, 4> x = load_place<WIDE, 4>(from + i, n - i);
        UNROLL
        for (int e = 0; e < 4; e++) v[i + e] = x.v[e];
    }
}

/* ---- forward and backward ---------------------------------------------------------------------
 */

/* Places whose loads are under way together. */
const int FORWARD_PLACES = 4, BACKWARD_PLACES = 2;

template <class T> struct apply_args {
    const T *x, *z, *dy; /* z: the second input, or NULL */
    T *y, *dx, *dz;
    uint8_t *bits;            /* NULL: none */
    int64_t places, c, bytes; /* bytes of a place's bits */
    int64_t groups, step;     /* threads of a place; places that all threads have at a time */
    float cap;                /* infinite: none */
    bool relu, wide, adds, z_adds;
};

/* Where a thread is: it goes from place to place by a.step. */
template <int N> struct apply_part {
    int64_t mine; /* its first place; none if it is a.step */
    int64_t k, n; /* its first channel; how many there are from there on, or fewer than 1 */
    int64_t group;
    unsigned bits; /* of the channels that exist */
};

template <int N, class T>
__device__ __forceinline__ apply_part<N> apply_part_of(const apply_args<T> &a)
{
    const int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x;
    int64_t place = t;
    apply_part<N> at;
    at.group = take(&place, a.groups);
    at.mine = place < a.step ? place : a.step;
    at.k = at.group * N;
    at.n = at.mine < a.step ? a.c - at.k : 0;
    at.bits = at.n >= N ? (1u << N) - 1 : at.n > 0 ? (1u << at.n) - 1 : 0;
    if (at.k >= a.c) at.k = 0; /* a thread without channels loads and stores nothing */
    return at;
}

/* The offsets of U places, of which `place` is the first; those that are not there become that
 * one's, so that nobody reads what another thread writes. */
template <int U, class T>
__device__ __forceinline__ void offsets_of(int64_t at[U], const apply_args<T> &a, int64_t place,
                                           int64_t first)
{
    UNROLL
    for (int u = 0; u < U; u++)
        at[u] = place + u * a.step < a.places ? first + u * a.step * a.c : first;
}

/* y = relu(y), at most cap: the bits are of the channels whose gradients pass. NaN stays. */
template <int N> __device__ __forceinline__ unsigned relu(float y[N], float cap)
{
    unsigned bits = 0;
    if (cap < INFINITY) {
        UNROLL
        for (int e = 0; e < N; e++) {
            bits |= (unsigned)((y[e] > 0) & (y[e] < cap)) << e;
            y[e] = y[e] > cap ? cap : y[e];
        }
    } else {
        UNROLL
        for (int e = 0; e < N; e++) bits |= (unsigned)(y[e] > 0) << e;
    }
    UNROLL
    for (int e = 0; e < N; e++) y[e] = y[e] <= 0 ? 0 : y[e];
    return bits;
}

/* Bits of a thread's channels become a byte with those of its neighbour, if it has four. All
 * threads of a warp call it. */
template <int N>
__device__ __forceinline__ void put_bits(uint8_t *to, unsigned bits, int64_t group, bool there)
{
    if (N == 4) bits |= __shfl_down_sync(GPU_ALL, bits, 1) << 4;
    if (there && (N == 8 || group % 2 == 0)) *to = (uint8_t)bits;
}

template <class T, bool WIDE>
__global__ void __launch_bounds__(CUDA_THREADS, WIDE ? 2 : 1)
    forward_kernel(const apply_args<T> a, const facts f)
{
    const int N = EACH<T>, U = FORWARD_PLACES;
    const apply_part<N> part = apply_part_of<N>(a);
    float mean[N], scale[N], offset[N];
    if (N == 8 && part.n <= 0) return; /* it has no neighbour's bits */
    load_facts<WIDE, N>(mean, f.mean + part.k, part.n);
    load_facts<WIDE, N>(scale, f.scale + part.k, part.n);
    load_facts<WIDE, N>(offset, f.offset + part.k, part.n);
    int64_t first = part.mine * a.c + part.k;
    for (int64_t p = 0; p < a.places; p += U * a.step, first += U * a.step * a.c) {
        const int64_t place = p + part.mine; /* all threads take as many turns: put_bits */
        const bool here = part.n > 0 && place < a.places;
        int64_t at[U];
        pack<T, N> x[U] = {}, z[U] = {};
        offsets_of<U>(at, a, place, first);
        if (here) {
            load_places<WIDE, U>(x, a.x, at, part.n);
            if (a.z) load_places<WIDE, U>(z, a.z, at, part.n);
        }
        UNROLL
        for (int u = 0; u < U; u++) {
            const bool there = part.mine < a.step && place + u * a.step < a.places;
            float y[N];
            unsigned bits = 0;
            unpack<N>(y, x[u]);
            UNROLL
            for (int e = 0; e < N; e++) y[e] = fmaf(y[e] - mean[e], scale[e], offset[e]);
            if (a.z) add_place<N>(y, z[u]);
            if (a.relu) bits = relu<N>(y, a.cap);
            if (there && part.n > 0) store_place<WIDE, N>(a.y + at[u], y, part.n);
            if (!a.bits) continue;
            uint8_t *to = a.bits + (place + u * a.step) * a.bytes;
            put_bits<N>(to + part.group * N / 8, bits & part.bits, part.group, there);
            if (there && part.group == 0 && a.bytes * 8 >= a.c + 8) to[a.bytes - 1] = 0;
        }
    }
}

template <class T, bool WIDE>
__global__ void __launch_bounds__(CUDA_THREADS, WIDE ? 2 : 1)
    backward_kernel(const apply_args<T> a, const facts f)
{
    const int N = EACH<T>, U = BACKWARD_PLACES;
    const apply_part<N> part = apply_part_of<N>(a);
    float mean[N], slope[N], less[N], by[N];
    load_facts<WIDE, N>(mean, f.mean + part.k, part.n);
    load_facts<WIDE, N>(slope, f.scale + part.k, part.n);
    load_facts<WIDE, N>(less, f.a + part.k, part.n);
    load_facts<WIDE, N>(by, f.b + part.k, part.n);
    if (part.n <= 0) return;
    int64_t first = part.mine * a.c + part.k;
    for (int64_t place = part.mine; place < a.places;
         place += U * a.step, first += U * a.step * a.c) {
        int64_t at[U];
        pack<T, N> given[U], x[U], old[U], z_old[U];
        unsigned bits[U];
        offsets_of<U>(at, a, place, first);
        load_places<WIDE, U>(given, a.dy, at, part.n);
        if (a.dx) load_places<WIDE, U>(x, a.x, at, part.n);
        if (a.dx && a.adds) load_places<WIDE, U>(old, a.dx, at, part.n);
        if (a.dz && a.z_adds) load_places<WIDE, U>(z_old, a.dz, at, part.n);
        UNROLL
        for (int u = 0; u < U; u++) {
            const int64_t p = place + u * a.step < a.places ? place + u * a.step : place;
            bits[u] = a.bits ? a.bits[p * a.bytes + part.group * N / 8] >> part.k % 8 : 255u;
        }
        UNROLL
        for (int u = 0; u < U; u++) {
            float dz[N], dx[N];
            if (place + u * a.step >= a.places) break;
            unpack<N>(dz, given[u]);
            UNROLL
            for (int e = 0; e < N; e++) dz[e] = bits[u] >> e & 1 ? dz[e] : 0;
            if (a.dx) {
                unpack<N>(dx, x[u]);
                UNROLL
                for (int e = 0; e < N; e++)
                    dx[e] = slope[e] * fmaf(mean[e] - dx[e], by[e], dz[e] - less[e]);
                if (a.adds) add_place<N>(dx, old[u]);
                store_place<WIDE, N>(a.dx + at[u], dx, part.n);
            }
            if (a.dz) {
                if (a.z_adds) add_place<N>(dz, z_old[u]);
                store_place<WIDE, N>(a.dz + at[u], dz, part.n);
            }
        }
    }
}

/* Threads of a launch: some places at a time, so that a thread has a dozen of them or more, since
 * it first reads what belongs to its channels, and all multiprocessors have several blocks. */
const int64_t PLACES_EACH = 12;

template <class T> apply_args<T> apply_of(const keel_call *c)
{
    const keel_batch_norm_args *args = cuda_args<keel_batch_norm_args>(c);
    const keel_node *n = c->node;
    apply_args<T> a = {};
    a.c = channels_of(n);
    a.places = c->rows * (keel_row_count(&n->in[0]) / a.c);
    a.relu = args->relu;
    a.cap = args->max_value > 0 ? (float)args->max_value : INFINITY;
    a.bits = args->relu && n->n_saved ? static_cast<uint8_t *>(c->saved[0]) : nullptr;
    a.groups = (a.c + 7) / 8 * (8 / EACH<T>); /* so that bytes of bits are whole */
    a.bytes = keel_batch_norm_bits(a.c);
    a.x = cuda_in<T>(c, 0);
    a.wide = a.c % EACH<T> == 0 && fits_pack<EACH<T>>(a.x);
    const int64_t least = CUDA_BLOCKS / 4 * CUDA_THREADS / a.groups;
    a.step = a.places / PLACES_EACH > least ? a.places / PLACES_EACH : least;
    if (a.step > a.places) a.step = a.places;
    if (a.step < 1) a.step = 1;
    return a;
}

template <class T> unsigned apply_blocks(const apply_args<T> &a)
{
    const int64_t blocks = (a.step * a.groups + CUDA_THREADS - 1) / CUDA_THREADS;
    return a.places > 0 ? (unsigned)blocks : 0;
}

template <class T> void forward(const keel_call *c)
{
    apply_args<T> a = apply_of<T>(c);
    const facts f = facts_of(c, false);
    a.y = cuda_out<T>(c);
    a.z = c->node->n_in > 1 ? cuda_in<T>(c, 1) : nullptr;
    a.wide = a.wide && fits_pack<EACH<T>>(a.y) && (!a.z || fits_pack<EACH<T>>(a.z));
    cuda_launch(c, a.wide ? forward_kernel<T, true> : forward_kernel<T, false>, apply_blocks(a),
                CUDA_THREADS, 0, a, f);
}

template <class T> void backward(const keel_call *c)
{
    apply_args<T> a = apply_of<T>(c);
    a.dx = cuda_in_grad<T>(c, 0);
    a.dz = c->node->n_in > 1 ? cuda_in_grad<T>(c, 1) : nullptr;
    if (!a.dx && !a.dz) return;
    const facts f = facts_of(c, true);
    a.dy = cuda_out_grad<T>(c);
    a.adds = c->in_adds[0];
    a.z_adds = a.dz && c->in_adds[1];
    a.wide = a.wide && fits_pack<EACH<T>>(a.dy) && (!a.dx || fits_pack<EACH<T>>(a.dx)) &&
             (!a.dz || fits_pack<EACH<T>>(a.dz));
    cuda_launch(c, a.wide ? backward_kernel<T, true> : backward_kernel<T, false>, apply_blocks(a),
                CUDA_THREADS, 0, a, f);
}

/* ---- records ----------------------------------------------------------------------------------
 *
 * A block has some threads' channels, of a piece of one row or of several small rows. As many
 * threads share the places that each has some dozens. Both, and how a row is cut into pieces,
 * depend on the type and the numbers of channels and places alone. Sums of pieces are added in
 * their order, by a launch of its own.
 */

/* AT_ONCE: places whose loads are under way together; of two arrays fewer, so that a
 * multiprocessor has registers for several blocks. */
const int SUMS = 2, AT_ONCE = 4, BACK_AT_ONCE = 3;
const int64_t PIECE_PLACES = 784, PIECES_MOST = 16, THREAD_PLACES = 24;

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

template <int N> __device__ __forceinline__ row_part part_of(const row_layout &l, int64_t block)
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
__device__ __forceinline__ void over_lines(double *to, const double mine[SUMS][N], double *room,
                                           const row_layout &l, const row_part &at)
{
    const int t = (int)threadIdx.x;
    UNROLL
    for (int s = 0; s < SUMS; s++) UNROLL
    for (int e = 0; e < N; e++) room[(s * N + e) * CUDA_THREADS + t] = mine[s][e];
    __syncthreads();
    for (int j = at.line; j < SUMS * N; j += l.lines) {
        const double *from = room + j * CUDA_THREADS + t - at.line * l.lanes;
        double sum = 0;
        for (int i = 0; i < l.lines; i++) sum += from[i * l.lanes];
        if (j % N < at.n) to[j / N * l.c + j % N] = sum;
    }
    __syncthreads(); /* room is used again */
}

/* The offsets of U places of a piece; those behind its end become the last one's. */
template <int U>
__device__ __forceinline__ void offsets_of(int64_t at[U], const row_layout &l, const row_part &part,
                                           int64_t first)
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
__device__ __forceinline__ void add_few(double sum[SUMS][N], const F few[SUMS][N])
{
    UNROLL
    for (int e = 0; e < N; e++) {
        sum[0][e] += (double)few[0][e];
        sum[1][e] += (double)few[1][e];
    }
}

/* The sums about the first place's value, of values and of squares. */
template <class T, bool WIDE>
__global__ void __launch_bounds__(CUDA_THREADS, WIDE ? 2 : 1)
    partial_kernel(double *to, const T *in, const row_layout l)
{
    typedef typename few_of<T>::type F;
    const int N = EACH<T>, U = AT_ONCE;
    SHARED(double, room, SUMS *EACH<T> *CUDA_THREADS);
    for (int64_t b = blockIdx.x; b < l.blocks; b += gridDim.x) {
        const row_part at = part_of<N>(l, b);
        const T *x = in + at.row * l.per_row * l.c + at.k;
        double sum[SUMS][N] = {};
        float pivot[N] = {};
        if (at.n > 0) unpack<N>(pivot, load_place<WIDE, N>(x, at.n));
        for (int64_t p = at.first + at.line; at.n > 0 && p < at.end; p += U * l.lines) {
            int64_t from[U];
            pack<T, N> v[U];
            F few[SUMS][N] = {};
            offsets_of<U>(from, l, at, p);
            load_places<WIDE, U>(v, x, from, at.n);
            UNROLL
            for (int u = 0; u < U; u++) {
                const bool there = p + u * l.lines < at.end;
                float value[N];
                unpack<N>(value, v[u]);
                UNROLL
                for (int e = 0; e < N; e++) {
                    const F d = there ? (F)value[e] - (F)pivot[e] : 0;
                    few[0][e] += d;
                    few[1][e] = fma(d, d, few[1][e]);
                }
            }
            add_few(sum, few);
        }
        over_lines<N>(to + (at.row * l.pieces + at.piece) * SUMS * l.c + at.k, sum, room, l, at);
    }
}

/* Sums of the gradient, and of its products with x - mean. The products are with x - the mean as a
 * float, and are put right at the end. */
template <class T, bool WIDE>
__global__ void __launch_bounds__(CUDA_THREADS, WIDE ? 2 : 1)
    partial_backward_kernel(double *to, const T *in, const T *out_grad, const uint8_t *bits,
                            const facts_args f, int64_t bytes, const row_layout l)
{
    typedef typename few_of<T>::type F;
    const int N = EACH<T>, U = BACK_AT_ONCE;
    SHARED(double, room, SUMS *EACH<T> *CUDA_THREADS);
    for (int64_t b = blockIdx.x; b < l.blocks; b += gridDim.x) {
        const row_part at = part_of<N>(l, b);
        const int64_t first = at.row * l.per_row;
        const T *x = in + first * l.c + at.k, *dy = out_grad + first * l.c + at.k;
        const uint8_t *bit = bits ? bits + first * bytes + at.k / 8 : nullptr;
        double sum[SUMS][N] = {};
        float mean[N];
        UNROLL
        for (int e = 0; e < N; e++) mean[e] = e < at.n ? (float)mean_of(f, at.k + e) : 0;
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
                UNROLL
                for (int e = 0; e < N; e++) {
                    const F passed = kept[u] >> e & 1 ? grad[e] : 0;
                    few[0][e] += passed;
                    few[1][e] = fma(passed, (F)value[e] - (F)mean[e], few[1][e]);
                }
            }
            add_few(sum, few);
        }
        for (int e = 0; e < N; e++)
            if (e < at.n) sum[1][e] += ((double)mean[e] - mean_of(f, at.k + e)) * sum[0][e];
        over_lines<N>(to + (at.row * l.pieces + at.piece) * SUMS * l.c + at.k, sum, room, l, at);
    }
}

/* A row's sums of all pieces. */
struct row_sums {
    double of[SUMS];
};

__device__ __forceinline__ row_sums over_pieces(const double *sums, const row_layout &l,
                                                int64_t row, int64_t k)
{
    row_sums all = {};
    for (int64_t p = 0; p < l.pieces; p++) UNROLL
    for (int s = 0; s < SUMS; s++) all.of[s] += sums[((row * l.pieces + p) * SUMS + s) * l.c + k];
    return all;
}

/* The mean, and the sum of squares about it. */
template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
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

__global__ void __launch_bounds__(CUDA_THREADS)
    normalize_kernel(double *records, const double *sums, const facts_args f, const row_layout l)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS, n = l.rows * l.c;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < n; t += step) {
        int64_t row = t;
        const int64_t k = take(&row, l.c);
        const row_sums all = over_pieces(sums, l, row, k);
        double *to = records + row * SUMS * l.c + k;
        to[0] = all.of[0];
        to[l.c] = all.of[1] * channel_of(f, k).invstd;
    }
}

/* each: channels of a thread. */
row_layout layout_of(int64_t c, int64_t rows, int64_t per_row, int each)
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

unsigned grid_of(const row_layout &l)
{
    const int64_t most = CUDA_BLOCKS * 8;
    return (unsigned)(l.blocks < most ? l.blocks : most);
}

/* Bytes of scratch for the sums of pieces. */
int64_t sums_bytes(int64_t c, int64_t rows, int64_t per_row)
{
    const row_layout l = layout_of(c, rows, per_row, 4);
    return rows * l.pieces * SUMS * c * (int64_t)sizeof(double);
}

template <class T> void partial(const keel_call *c)
{
    const T *x = cuda_in<T>(c, 0);
    const int64_t n = channels_of(c->node);
    const row_layout l = layout_of(n, c->rows, keel_row_count(&c->node->in[0]) / n, EACH<T>);
    const bool wide = n % EACH<T> == 0 && fits_pack<EACH<T>>(x);
    double *sums = static_cast<double *>(c->scratch);
    cuda_launch(c, wide ? partial_kernel<T, true> : partial_kernel<T, false>, grid_of(l),
                CUDA_THREADS, 0, sums, x, l);
    cuda_launch(c, mean_kernel<T>, cuda_blocks(c->rows * n), CUDA_THREADS, 0, c->partial, sums, x,
                l);
}

/* Records of `rows` rows of `per_row` places, which are those of the call. */
template <class T>
void records_backward(const keel_call *c, double *records, double *sums, int64_t rows,
                      int64_t per_row)
{
    const T *x = cuda_in<T>(c, 0), *dy = cuda_out_grad<T>(c);
    const int64_t n = channels_of(c->node);
    const row_layout l = layout_of(n, rows, per_row, EACH<T>);
    const bool wide = n % EACH<T> == 0 && fits_pack<EACH<T>>(x) && fits_pack<EACH<T>>(dy);
    const bool relu = cuda_args<keel_batch_norm_args>(c)->relu;
    const uint8_t *bits =
        relu && c->node->n_saved ? static_cast<const uint8_t *>(c->saved[0]) : nullptr;
    const facts_args f = args_of(c);
    cuda_launch(c, wide ? partial_backward_kernel<T, true> : partial_backward_kernel<T, false>,
                grid_of(l), CUDA_THREADS, 0, sums, x, dy, bits, f, keel_batch_norm_bits(n), l);
    cuda_launch(c, normalize_kernel, cuda_blocks(rows * n), CUDA_THREADS, 0, records, sums, f, l);
}

template <class T> void partial_backward(const keel_call *c)
{
    const int64_t n = channels_of(c->node);
    records_backward<T>(c, c->partial, static_cast<double *>(c->scratch), c->rows,
                        keel_row_count(&c->node->in[0]) / n);
}

/* ---- weights ----------------------------------------------------------------------------------
 */

__global__ void __launch_bounds__(CUDA_THREADS)
    weights_kernel(float *dgamma, float *dbeta, const double *sums, const facts_args f, bool adds)
{
    const int64_t k = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x;
    if (k >= f.c) return;
    const double sum = sums[k];
    double product = sums[f.c + k];
    if (f.renorm) { /* xhat r + d is what gamma is multiplied by */
        const channel h = channel_of(f, k);
        product = h.r * product + h.d * sum;
    }
    if (dbeta) dbeta[k] = (float)(adds ? dbeta[k] + sum : sum);
    if (dgamma) dgamma[k] = (float)(adds ? dgamma[k] + product : product);
}

template <class T> void weights(const keel_call *c)
{
    const keel_batch_norm_args *a = cuda_args<keel_batch_norm_args>(c);
    const facts_args f = args_of(c);
    float *dgamma = a->scale ? static_cast<float *>(c->weight_grad[0]) : nullptr;
    float *dbeta = a->center ? static_cast<float *>(c->weight_grad[a->scale]) : nullptr;
    const double *sums = f.merged + 1;
    if (!dgamma && !dbeta) return;
    if (!f.forward) {
        double *own = static_cast<double *>(c->scratch);
        records_backward<T>(c, own, own + SUMS * f.c, 1, c->rows * (int64_t)f.per_row);
        sums = own;
    }
    cuda_launch(c, weights_kernel, cuda_blocks(f.c), CUDA_THREADS, 0, dgamma, dbeta, sums, f,
                c->weight_adds);
}

keel_status prepare(keel_prepare *p)
{
    const int64_t c = channels_of(p->node), per_row = keel_row_count(&p->node->in[0]) / c;
    if (p->pass == KEEL_PARTIAL || p->pass == KEEL_PARTIAL_BACKWARD)
        return cuda_prepare(p, sums_bytes(c, p->rows, per_row));
    if (p->pass == KEEL_WEIGHTS) /* a record of all rows, and what it is made of */
        return cuda_prepare(p, c * 16 + sums_bytes(c, 1, p->rows * per_row));
    return cuda_prepare(p, c * 20); /* facts */
}
} // namespace

CUDA_KERNEL(batch_norm) = { .op = &keel_op_batch_norm,
                            .name = "cuda",
                            .prepare = prepare,
                            .run = { forward<float>, backward<float>, weights<float>,
                                     partial<float>, partial_backward<float> },
                            .narrow = { forward<bf16>, backward<bf16>, weights<bf16>, partial<bf16>,
                                        partial_backward<bf16> },
                            .half = { forward<f16>, backward<f16>, weights<f16>, partial<f16>,
                                      partial_backward<f16> } };
