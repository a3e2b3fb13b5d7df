/* What batch normalisation does with its facts: the values, their gradients, and those of gamma and
 * beta: see ops/batch_norm.c. A thread has the same channels of every place that it comes to, so it
 * reads what belongs to them once. */
#ifndef KEEL_OPS_CUDA_BATCH_NORM_APPLY_H
#define KEEL_OPS_CUDA_BATCH_NORM_APPLY_H
#include "ops/cuda/_batch_norm_records.h"

template <int N, class T>
static __device__ __forceinline__ void add_place(float v[N], const pack<T, N> &more)
{
    float x[N];
    unpack<N>(x, more);
    UNROLL
    for (int e = 0; e < N; e++) v[e] += x[e];
}

/* ---- forward and backward ---------------------------------------------------------------------
 */

/* Places whose loads are under way together. */
static const int FORWARD_PLACES = 4, BACKWARD_PLACES = 2;

template <class T> struct apply_args {
    const T *x, *z, *dy; /* z: the second input, or NULL */
    const T *mask;       /* of places, or NULL */
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
static __device__ __forceinline__ apply_part<N> apply_part_of(const apply_args<T> &a)
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
static __device__ __forceinline__ void offsets_of(int64_t at[U], const apply_args<T> &a,
                                                  int64_t place, int64_t first)
{
    UNROLL
    for (int u = 0; u < U; u++)
        at[u] = place + u * a.step < a.places ? first + u * a.step * a.c : first;
}

/* y = relu(y), at most cap: the bits are of the channels whose gradients pass. NaN stays. */
template <int N> static __device__ __forceinline__ unsigned relu(float y[N], float cap)
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
static __device__ __forceinline__ void put_bits(uint8_t *to, unsigned bits, int64_t group,
                                                bool there)
{
    if (N == 4) bits |= __shfl_down_sync(GPU_ALL, bits, 1) << 4;
    if (there && (N == 8 || group % 2 == 0)) *to = (uint8_t)bits;
}

template <class T, bool WIDE, bool SILU>
static __global__ void __launch_bounds__(CUDA_THREADS, WIDE ? 2 : 1)
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
            if (SILU) {
                UNROLL
                for (int e = 0; e < N; e++) y[e] = silu_value<sizeof(T) == 2>(y[e]);
            }
            if (there && part.n > 0) store_place<WIDE, N>(a.y + at[u], y, part.n);
            if (!a.bits) continue;
            uint8_t *to = a.bits + (place + u * a.step) * a.bytes;
            put_bits<N>(to + part.group * N / 8, bits & part.bits, part.group, there);
            if (there && part.group == 0 && a.bytes * 8 >= a.c + 8) to[a.bytes - 1] = 0;
        }
    }
}

/* MASKED: places that do not count have no share in the statistics. */
enum norm_kind { PLAIN, MASKED, SILU };
template <class T, bool WIDE, norm_kind KIND>
static __global__ void __launch_bounds__(CUDA_THREADS, WIDE ? 2 : 1)
    backward_kernel(const apply_args<T> a, const facts f)
{
    const int N = EACH<T>, U = BACKWARD_PLACES;
    const apply_part<N> part = apply_part_of<N>(a);
    float mean[N], slope[N], less[N], by[N], offset[N];
    load_facts<WIDE, N>(mean, f.mean + part.k, part.n);
    load_facts<WIDE, N>(slope, f.scale + part.k, part.n);
    load_facts<WIDE, N>(less, f.a + part.k, part.n);
    load_facts<WIDE, N>(by, f.b + part.k, part.n);
    if (KIND == SILU) load_facts<WIDE, N>(offset, f.offset + part.k, part.n);
    if (part.n <= 0) return;
    int64_t first = part.mine * a.c + part.k;
    for (int64_t place = part.mine; place < a.places;
         place += U * a.step, first += U * a.step * a.c) {
        int64_t at[U];
        pack<T, N> given[U], x[U], old[U], z_old[U];
        unsigned bits[U];
        bool counts[U];
        offsets_of<U>(at, a, place, first);
        load_places<WIDE, U>(given, a.dy, at, part.n);
        if (a.dx) load_places<WIDE, U>(x, a.x, at, part.n);
        if (a.dx && a.adds) load_places<WIDE, U>(old, a.dx, at, part.n);
        if (a.dz && a.z_adds) load_places<WIDE, U>(z_old, a.dz, at, part.n);
        UNROLL
        for (int u = 0; u < U; u++) {
            const int64_t p = place + u * a.step < a.places ? place + u * a.step : place;
            counts[u] = KIND != MASKED || is_counted(a.mask[p]);
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
                if (KIND == SILU) pass_silu<T, N>(dz, dx, mean, slope, offset);
                UNROLL
                for (int e = 0; e < N; e++) {
                    const float rest = fmaf(mean[e] - dx[e], by[e], dz[e] - less[e]);
                    dx[e] = slope[e] * (counts[u] ? rest : dz[e]);
                }
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
static const int64_t PLACES_EACH = 12;

template <class T> static apply_args<T> apply_of(const keel_call *c)
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

template <class T> static unsigned apply_blocks(const apply_args<T> &a)
{
    const int64_t blocks = (a.step * a.groups + CUDA_THREADS - 1) / CUDA_THREADS;
    return a.places > 0 ? (unsigned)blocks : 0;
}

template <class T> static void forward(const keel_call *c)
{
    apply_args<T> a = apply_of<T>(c);
    const facts f = facts_of(c, false);
    a.y = cuda_out<T>(c);
    a.z = c->node->n_in > 1 && !has_mask(c->node) ? cuda_in<T>(c, 1) : nullptr;
    a.wide = a.wide && fits_pack<EACH<T>>(a.y) && (!a.z || fits_pack<EACH<T>>(a.z));
    const bool silu = has_silu(c->node);
    cuda_launch(c,
                a.wide ? silu ? forward_kernel<T, true, true> : forward_kernel<T, true, false>
                : silu ? forward_kernel<T, false, true>
                       : forward_kernel<T, false, false>,
                apply_blocks(a), CUDA_THREADS, 0, a, f);
}

template <class T, norm_kind KIND>
static void launch_backward(const keel_call *c, const apply_args<T> &a, const facts &f)
{
    cuda_launch(c, a.wide ? backward_kernel<T, true, KIND> : backward_kernel<T, false, KIND>,
                apply_blocks(a), CUDA_THREADS, 0, a, f);
}

template <class T> static void backward(const keel_call *c)
{
    apply_args<T> a = apply_of<T>(c);
    a.dx = cuda_in_grad<T>(c, 0);
    a.dz = c->node->n_in > 1 && !has_mask(c->node) ? cuda_in_grad<T>(c, 1) : nullptr;
    if (!a.dx && !a.dz) return;
    const facts f = facts_of(c, true);
    a.dy = cuda_out_grad<T>(c);
    a.adds = c->in_adds[0];
    a.z_adds = a.dz && c->in_adds[1];
    a.wide = a.wide && fits_pack<EACH<T>>(a.dy) && (!a.dx || fits_pack<EACH<T>>(a.dx)) &&
             (!a.dz || fits_pack<EACH<T>>(a.dz));
    if (has_mask(c->node) && meets(c->node)) {
        a.mask = cuda_in<T>(c, 1);
        launch_backward<T, MASKED>(c, a, f);
    } else if (has_silu(c->node)) {
        launch_backward<T, SILU>(c, a, f);
    } else {
        launch_backward<T, PLAIN>(c, a, f);
    }
}

/* ---- weights ----------------------------------------------------------------------------------
 */

static __global__ void __launch_bounds__(CUDA_THREADS)
    weights_kernel(float *dgamma, float *dbeta, const double *sums, const facts_args f, bool adds)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t k = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; k < f.c; k += step) {
        const double sum = sums[k];
        double product = sums[f.c + k];
        if (f.renorm) { /* xhat r + d is what gamma is multiplied by */
            const norm_channel h = norm_channel_of(f, k);
            product = h.r * product + h.d * sum;
        }
        if (dbeta) dbeta[k] = (float)(adds ? dbeta[k] + sum : sum);
        if (dgamma) dgamma[k] = (float)(adds ? dgamma[k] + product : product);
    }
}

template <class T> static void weights(const keel_call *c)
{
    const keel_batch_norm_args *a = cuda_args<keel_batch_norm_args>(c);
    const facts_args f = args_of(c);
    float *dgamma = a->scale ? static_cast<float *>(c->weight_grad[0]) : nullptr;
    float *dbeta = a->center ? static_cast<float *>(c->weight_grad[a->scale]) : nullptr;
    const double *sums = f.merged + 1;
    if (!dgamma && !dbeta) return;
    if (!f.forward) {
        double *own = sums_of(c);
        records_backward<T>(c, own, own + SUMS * f.c, 1, c->rows * (int64_t)f.per_row);
        sums = own;
    }
    cuda_launch(c, weights_kernel, cuda_blocks(f.c), CUDA_THREADS, 0, dgamma, dbeta, sums, f,
                c->weight_adds);
}

static keel_status batch_norm_prepare(keel_prepare *p)
{
    const int64_t c = channels_of(p->node), per_row = keel_row_count(&p->node->in[0]) / c;
    const int64_t known = facts_bytes(p->node);
    int64_t room = 0; /* for sums */
    if (p->pass == KEEL_PARTIAL || p->pass == KEEL_PARTIAL_BACKWARD)
        room = sums_bytes(c, p->rows, per_row);
    if (p->pass == KEEL_WEIGHTS) /* a record of all rows, and what it is made of */
        room = c * 16 + sums_bytes(c, 1, p->rows * per_row);
    return cuda_prepare(p, masked_bytes(p->node) + known + room);
}

#endif
