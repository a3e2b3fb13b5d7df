/* Lines of neighbours that are folded: softmax, layer normalisation. A line has a warp or, where it
 * is long, a block; which of the two, and with it the order of its sums, only its length decides.
 */
#ifndef KEEL_OPS_CUDA_LINES_H
#define KEEL_OPS_CUDA_LINES_H
#include "ops/cuda/_kernel.h"

static const int64_t LINE_LONG = 1024; /* elements that are too many for a warp */

/* The threads of a line, of a kernel with CUDA_THREADS: one, a warp or a block. */
template <int THREADS> struct line_of_threads {
    static const int WIDTH = THREADS, LINES = CUDA_THREADS / WIDTH;

    static __device__ __forceinline__ int64_t first_line()
    {
        return (int64_t)blockIdx.x * LINES + threadIdx.x / WIDTH;
    }
    static __device__ __forceinline__ int64_t step()
    {
        return (int64_t)gridDim.x * LINES;
    }
    static __device__ __forceinline__ int number()
    {
        return (int)threadIdx.x % WIDTH;
    }
    template <class V, class F> static __device__ __forceinline__ V fold(V x, V *room, F f)
    {
        if constexpr (WIDTH == 1)
            return x;
        else if constexpr (WIDTH == GPU_WARP)
            return warp_fold(x, f);
        else
            return block_fold(x, room, f);
    }
    static unsigned blocks(int64_t lines)
    {
        return cuda_turns((lines + LINES - 1) / LINES);
    }
};

template <bool LONG> using line_threads = line_of_threads<LONG ? CUDA_THREADS : GPU_WARP>;

static inline unsigned line_blocks(int64_t lines, bool is_long)
{
    return is_long ? line_threads<true>::blocks(lines) : line_threads<false>::blocks(lines);
}

#endif
