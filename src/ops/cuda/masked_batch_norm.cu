/* See ops/masked_batch_norm.c. All but the records of rows, and which places have a share in them,
 * is as in batch_norm.cu. */
#include "ops/cuda/_batch_norm_apply.h"

namespace
{
/* Of each row, by a warp: how many places count, and the first; 0 if there is none. */
template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    count_kernel(int64_t *counted, int64_t *first, const T *mask, const row_layout l)
{
    const int lane = (int)threadIdx.x % GPU_WARP, warps = CUDA_THREADS / GPU_WARP;
    const int64_t step = (int64_t)gridDim.x * warps;
    for (int64_t row = (int64_t)blockIdx.x * warps + threadIdx.x / GPU_WARP; row < l.rows;
         row += step) {
        int64_t n = 0, least = l.per_row;
        for (int64_t p = lane; p < l.per_row; p += GPU_WARP) {
            if (!is_counted(mask[row * l.per_row + p])) continue;
            n++;
            if (p < least) least = p;
        }
        for (int by = GPU_WARP / 2; by > 0; by /= 2) {
            const int64_t other = __shfl_down_sync(GPU_ALL, least, by);
            n += __shfl_down_sync(GPU_ALL, n, by);
            if (other < least) least = other;
        }
        if (lane > 0) continue;
        counted[row] = n;
        first[row] = n > 0 ? least : 0;
    }
}

/* The places that count, their mean, and the sum of squares about it. */
template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    masked_mean_kernel(double *records, const double *sums, const T *in, const row_mask<T> mask,
                       const row_layout l)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS, n = l.rows * l.c;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < n; t += step) {
        int64_t row = t;
        const int64_t k = take(&row, l.c), counted = mask.counted[row];
        const row_sums all = over_pieces(sums, l, row, k);
        double *to = records + row * (1 + SUMS * l.c), mean = 0, pivot = 0;
        if (counted > 0) {
            mean = all.of[0] / (double)counted;
            pivot = (double)to_f(in[(row * l.per_row + mask.first[row]) * l.c + k]);
        }
        if (k == 0) to[0] = (double)counted;
        to[1 + k] = pivot + mean;
        to[1 + l.c + k] = fmax(all.of[1] - all.of[0] * mean, 0.0) + 0 * mean; /* NaN stays */
    }
}

template <class T> __global__ void __launch_bounds__(CUDA_THREADS) zero_kernel(T *to, int64_t n)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t i = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; i < n; i += step)
        to[i] = to_value<T>(0);
}

template <class T> void masked_partial(const keel_call *c)
{
    const T *x = cuda_in<T>(c, 0);
    const int64_t n = channels_of(c->node);
    const row_layout l = layout_of(n, c->rows, keel_row_count(&c->node->in[1]), EACH<T>);
    const bool wide = n % EACH<T> == 0 && fits_pack<EACH<T>>(x);
    int64_t *counted = static_cast<int64_t *>(c->scratch), *first = counted + c->rows;
    double *sums = reinterpret_cast<double *>(first + c->rows);
    const row_mask<T> mask = { cuda_in<T>(c, 1), counted, first };
    cuda_launch(c, count_kernel<T>, cuda_blocks(c->rows * GPU_WARP), CUDA_THREADS, 0, counted,
                first, mask.of, l);
    cuda_launch(c, wide ? partial_kernel<T, true, true> : partial_kernel<T, false, true>,
                grid_of(l), CUDA_THREADS, 0, sums, x, mask, l);
    cuda_launch(c, masked_mean_kernel<T>, cuda_blocks(c->rows * n), CUDA_THREADS, 0, c->partial,
                sums, x, mask, l);
}

/* ---- what is as without a mask ----------------------------------------------------------------
 */

/* merged: {rows, places, mean [C], M2 [C]}. */
__global__ void __launch_bounds__(CUDA_THREADS)
    record_kernel(double *to, const double *merged, int64_t c)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t k = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; k < c; k += step) {
        const double places = merged[1], mean = merged[2 + k];
        const double divisor = places + COUNTED_MORE, off = mean * COUNTED_MORE / divisor;
        if (k == 0) to[0] = divisor;
        to[1 + k] = mean - off;
        to[1 + c + k] = merged[2 + c + k] + places * off * off;
    }
}

/* Keras's moments, as a record that has no mask. */
void make_record(const keel_call *c)
{
    const int64_t n = channels_of(c->node);
    const double *merged = c->merged_forward ? c->merged_forward : c->merged;
    if (meets(c->node) && c->rows > 0)
        cuda_launch(c, record_kernel, cuda_blocks(n), CUDA_THREADS, 0,
                    static_cast<double *>(c->scratch), merged, n);
}

template <class T> void masked_forward(const keel_call *c)
{
    make_record(c);
    forward<T>(c);
}

/* A mask has no gradient. */
template <class T> void masked_backward(const keel_call *c)
{
    T *mask_grad = cuda_in_grad<T>(c, 1);
    const int64_t places = c->rows * keel_row_count(&c->node->in[1]);
    if (mask_grad && !c->in_adds[1])
        cuda_launch(c, zero_kernel<T>, cuda_blocks(places), CUDA_THREADS, 0, mask_grad, places);
    make_record(c);
    backward<T>(c);
}

template <class T> void masked_partial_backward(const keel_call *c)
{
    make_record(c);
    partial_backward<T>(c);
}

keel_status prepare(keel_prepare *p)
{
    const int64_t places = keel_row_count(&p->node->in[1]);
    if (p->pass != KEEL_PARTIAL) return batch_norm_prepare(p);
    return cuda_prepare(p, 2 * p->rows * (int64_t)sizeof(int64_t) +
                               sums_bytes(channels_of(p->node), p->rows, places));
}
} // namespace

CUDA_KERNEL(masked_batch_norm) = {
    .op = &keel_op_masked_batch_norm,
    .name = "cuda",
    .prepare = prepare,
    .run = { masked_forward<float>, masked_backward<float>, weights<float>, masked_partial<float>,
             masked_partial_backward<float> },
    .narrow = { masked_forward<bf16>, masked_backward<bf16>, weights<bf16>, masked_partial<bf16>,
                masked_partial_backward<bf16> },
    .half = { masked_forward<f16>, masked_backward<f16>, weights<f16>, masked_partial<f16>,
              masked_partial_backward<f16> }
};
