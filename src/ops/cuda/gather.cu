/* See ops/gather.c. Places are sorted by the rows of the table that they ask for, and those that
 * ask for one row stay in their order. One warp adds up what a row gets, so that the bits are those
 * of one sum over the places, and no two threads add to one number. */
#include "ops/cuda/_move.h"
#include "ops/cuda/_numbers.h"
#include "ops/cuda/_packs.h"
#include "ops/cuda/_sort.h"

namespace
{
const int FOUR = 4;                  /* columns of the table that a thread has */
const int COLUMNS = FOUR * GPU_WARP; /* and a warp */
const int64_t NO_ROW = -1;
const int AT_ONCE = 16; /* places whose numbers a warp reads before it adds them */

/* The row of the table that an id asks for; NO_ROW: there is none. */
__device__ __forceinline__ int64_t row_of(int64_t id, int64_t rows)
{
    if (id < 0) id += rows;
    return id >= 0 && id < rows ? id : NO_ROW;
}

template <class N> __device__ __forceinline__ int64_t id_of(N x)
{
    if constexpr (std::is_integral<N>::value) {
        return (int64_t)x;
    } else {
        const float real = truncf(to_f(x));
        return fabsf(real) < 0x1p62f ? (int64_t)real : INT64_MAX; /* NaN, too */
    }
}

template <class N> __device__ __forceinline__ unsigned bits_of(N x)
{
    if constexpr (std::is_integral<N>::value)
        return cuda_number((int64_t)x);
    else
        return cuda_number(truncf(to_f(x)));
}

/* A thread has up to four numbers of a place. */
template <class T, class N>
__global__ void __launch_bounds__(CUDA_THREADS)
    forward_kernel(T *y, const float *table, const N *ids, int64_t places, int64_t per_row,
                   int64_t rows, int64_t d, bool wide, const cuda_report report)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS, groups = (d + 3) / 4;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < places * groups;
         t += step) {
        int64_t place = t;
        const int64_t k = 4 * take(&place, groups), row = row_of(id_of(ids[place]), rows);
        float x[4] = { 0, 0, 0, 0 };
        if (row != NO_ROW)
            load_some(x, table + row * d + k, d - k, wide);
        else if (k == 0)
            cuda_fault(report, place / per_row, bits_of(ids[place]));
        store_some(y + place * d + k, x, d - k, wide);
    }
}

/* A key has the row of the table above the place; a row that there is not comes last. */
const uint64_t NO_KEY = UINT32_MAX;

template <class N>
__global__ void __launch_bounds__(CUDA_THREADS)
    keys_kernel(uint64_t *key, const N *ids, int64_t places, int64_t rows)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t i = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; i < places; i += step) {
        const int64_t row = row_of(id_of(ids[i]), rows);
        key[i] = (row == NO_ROW ? NO_KEY : (uint64_t)row) << 32 | (uint64_t)i;
    }
}

/* The warp of the first of the sorted keys with its row adds up all of them, in their order. */
template <class T, bool WIDE>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    weights_kernel(float *dw, const T *dy, const uint64_t *key, int64_t places, int64_t d,
                   int64_t chunks)
{
    const int lane = (int)threadIdx.x % GPU_WARP, warps = CUDA_THREADS / GPU_WARP;
    const int64_t first = (int64_t)blockIdx.x * warps + threadIdx.x / GPU_WARP;
    for (int64_t t = first; t < places * chunks; t += (int64_t)gridDim.x * warps) {
        int64_t i = t;
        const int64_t k = take(&i, chunks) * COLUMNS + lane * FOUR, n = d - k;
        const uint64_t own = key[i] >> 32;
        if (own == NO_KEY || (i > 0 && key[i - 1] >> 32 == own)) continue;
        float *to = dw + (int64_t)own * d + k, sum[FOUR];
        load_some(sum, to, n, false);
        for (bool more = true; more; i += GPU_WARP) {
            const uint64_t mine = i + lane < places ? key[i + lane] : UINT64_MAX;
            const unsigned same = warp_votes(mine >> 32 == own); /* the first lanes */
            for (int j = 0; j < GPU_WARP && (same >> j & 1); j += AT_ONCE) {
                pack<T, FOUR> x[AT_ONCE] = {};
                UNROLL
                for (int q = 0; q < AT_ONCE; q++) {
                    const int from = same >> (j + q) & 1 ? j + q : j;
                    const int64_t place = __shfl_sync(GPU_ALL, (unsigned)mine, from);
                    if (n > 0) x[q] = load_place<WIDE, FOUR>(dy + place * d + k, n);
                }
                UNROLL
                for (int q = 0; q < AT_ONCE; q++) {
                    float v[FOUR];
                    unpack<FOUR>(v, x[q]);
                    UNROLL
                    for (int e = 0; e < FOUR; e++)
                        if (same >> (j + q) & 1) sum[e] += v[e];
                }
            }
            more = same == GPU_ALL;
        }
        store_some(to, sum, n, false);
    }
}

template <class T> void forward(const keel_call *c)
{
    const int64_t *table = c->node->weight[0].shape.dim, d = table[1];
    const int64_t per_row = keel_row_count(&c->node->in[0]), places = c->rows * per_row;
    const float *w = static_cast<const float *>(c->weight[0]);
    T *y = cuda_out<T>(c);
    with_type(c->node->in[0].dtype, c->in[0], [&](const auto *ids) {
        typedef std::remove_cv_t<std::remove_pointer_t<decltype(ids)>> N;
        cuda_launch(c, forward_kernel<T, N>, cuda_blocks(places * ((d + 3) / 4)), CUDA_THREADS, 0,
                    y, w, ids, places, per_row, table[0], d, d % 4 == 0 && wide4(w) && wide4(y),
                    cuda_report_of(keel_cuda_faults(c), c, CUDA_FAULT_ID));
    });
}

template <class T> void backward(const keel_call *c)
{
    no_gradient<T>(c, 0);
}

template <class T> void weights(const keel_call *c)
{
    const int64_t *table = c->node->weight[0].shape.dim, d = table[1];
    const int64_t places = c->rows * keel_row_count(&c->node->in[0]);
    const int64_t chunks = (d + COLUMNS - 1) / COLUMNS, warps = CUDA_THREADS / GPU_WARP;
    float *dw = static_cast<float *>(c->weight_grad[0]);
    uint64_t *keys = static_cast<uint64_t *>(c->scratch);
    if (!dw) return;
    if (!c->weight_adds) fill(c, dw, 0, table[0] * d);
    with_type(c->node->in[0].dtype, c->in[0], [&](const auto *ids) {
        typedef std::remove_cv_t<std::remove_pointer_t<decltype(ids)>> N;
        cuda_launch(c, keys_kernel<N>, cuda_blocks(places), CUDA_THREADS, 0, keys, ids, places,
                    table[0]);
    });
    const uint64_t *sorted = sort_keys(c, keys, places);
    const T *dy = cuda_out_grad<T>(c);
    const bool wide = d % FOUR == 0 && fits_pack<FOUR>(dy);
    cuda_launch(c, wide ? weights_kernel<T, true> : weights_kernel<T, false>,
                cuda_turns((places * chunks + warps - 1) / warps), CUDA_THREADS, 0, dw, dy, sorted,
                places, d, chunks);
}

keel_status prepare(keel_prepare *p)
{
    const int64_t places = p->rows * keel_row_count(&p->node->in[0]);
    if (!knows_type(p->node->in[0].dtype) || p->node->weight[0].shape.dim[0] > INT32_MAX ||
        places > UINT32_MAX)
        return KEEL_EUNSUP;
    return cuda_prepare(p, p->pass == KEEL_WEIGHTS ? sort_scratch(places) : 0);
}
} // namespace

CUDA_KERNEL(gather) = { .op = &keel_op_gather,
                        .name = "cuda",
                        .prepare = prepare,
                        .run = { forward<float>, backward<float>, weights<float> },
                        .narrow = { forward<bf16>, backward<bf16>, weights<bf16> },
                        .half = { forward<f16>, backward<f16>, weights<f16> } };
