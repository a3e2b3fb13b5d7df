/* Histograms in scratch: threads take turns at a count, which whole numbers allow, since their sums
 * do not depend on an order. */
#ifndef KEEL_OPS_CUDA_COUNTS_H
#define KEEL_OPS_CUDA_COUNTS_H
#include "ops/cuda/_kernel.h"

static __global__ void __launch_bounds__(CUDA_THREADS) counts_clear_kernel(unsigned *to, int64_t n)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < n; t += step) to[t] = 0;
}

static inline void counts_clear(const keel_call *c, unsigned *to, int64_t n)
{
    cuda_launch(c, counts_clear_kernel, cuda_blocks(n), CUDA_THREADS, 0, to, n);
}

#endif
