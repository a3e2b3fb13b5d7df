/* The order of the numbers along an axis, as ops/order.h has it: equal ones keep their order, and
 * NaN comes last. What is done with it is a functor: f(begin, place, from) is told, for a line that
 * begins there, that its number `from` is the one at `place` in the order.
 *
 * Of a short line, each element counts the ones before it; a long one is sorted by keys that hold
 * its places below its numbers. */
#ifndef KEEL_OPS_CUDA_ORDER_H
#define KEEL_OPS_CUDA_ORDER_H
#include "ops/cuda/_axis.h"
#include "ops/cuda/_sort.h"

static const int64_t ORDER_COUNTED = 64; /* numbers of a line that is not sorted */

/* Different for each place, in the order of the numbers; -0 is 0. */
static __device__ __forceinline__ uint64_t order_key(float x, int64_t place)
{
    const unsigned number = x != x ? UINT32_MAX : ascending(x == 0 ? 0 : x);
    return (uint64_t)number << 32 | (uint32_t)place;
}

template <class T, class F>
static __global__ void __launch_bounds__(CUDA_THREADS)
    order_count_kernel(const T *x, const axis_lines l, const F f)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < l.lines * l.n;
         t += step) {
        int64_t rest = t; /* neighbours have neighbouring elements */
        const int64_t side = take(&rest, l.inner), own = take(&rest, l.n);
        const int64_t begin = rest * l.n * l.inner + side;
        const uint64_t key = order_key(to_f(x[begin + own * l.inner]), own);
        int64_t place = 0;
        for (int64_t j = 0; j < l.n; j++)
            place += order_key(to_f(x[begin + j * l.inner]), j) < key ? 1 : 0;
        f(begin, place, own);
    }
}

template <class T>
static __global__ void __launch_bounds__(CUDA_THREADS)
    order_keys_kernel(uint64_t *key, const T *x, const axis_lines l)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < l.lines * l.n;
         t += step) {
        int64_t line = t;
        const int64_t j = take(&line, l.n);
        key[t] = order_key(to_f(x[l.begin(line) + j * l.inner]), j);
    }
}

template <class F>
static __global__ void __launch_bounds__(CUDA_THREADS)
    order_sorted_kernel(const uint64_t *key, const axis_lines l, const F f)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < l.lines * l.n;
         t += step) {
        int64_t line = t;
        const int64_t j = take(&line, l.n);
        f(l.begin(line), j, (int64_t)(uint32_t)key[t]);
    }
}

template <class T, class F> static void order_each(const keel_call *c, const T *x, F f)
{
    const axis_lines l = axis_lines_of(c);
    const unsigned blocks = cuda_blocks(l.lines * l.n);
    if (l.n <= ORDER_COUNTED) {
        cuda_launch(c, order_count_kernel<T, F>, blocks, CUDA_THREADS, 0, x, l, f);
        return;
    }
    uint64_t *keys = static_cast<uint64_t *>(c->scratch);
    cuda_launch(c, order_keys_kernel<T>, blocks, CUDA_THREADS, 0, keys, x, l);
    cuda_launch(c, order_sorted_kernel<F>, blocks, CUDA_THREADS, 0,
                sort_keys(c, keys, l.n, l.lines), l, f);
}

/* Scratch of order_each. */
static inline keel_status order_prepare(keel_prepare *p)
{
    const axis_lines l = axis_lines_of(p->node, p->node->in[0], p->rows);
    if (l.n > UINT32_MAX || sort_blocks(l.n, l.lines) > INT32_MAX) return KEEL_EUNSUP;
    return cuda_prepare(p, l.n <= ORDER_COUNTED ? 0 : sort_scratch(l.n * l.lines));
}

#endif
