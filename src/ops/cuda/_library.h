/* What kernels by a library share: what they are asked for, and what they run around its call. The
 * gradient of a bias is a sum over places (_places.h), and beside narrow values weights are rounded
 * to their type, since a library multiplies values of one type. */
#ifndef KEEL_OPS_CUDA_LIBRARY_H
#define KEEL_OPS_CUDA_LIBRARY_H
#include "device/cuda/libraries.h"
#include "ops/cuda/_places.h"

/* Whether a prepare asks for a pass in float32, on values that all have one type. */
static inline bool cuda_asked(const keel_prepare *p)
{
    const keel_node *n = p->node;
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i].dtype != n->held) return false;
    return n->real == KEEL_FLOAT32 && p->rows > 0 && p->pass <= KEEL_WEIGHTS &&
           (n->held == KEEL_FLOAT32 || keel_dtype_is_narrow(n->held));
}

/* Bytes to which all rows of a value are aligned, as the first is to 64: 16, or fewer. */
static inline int cuda_alignment(const keel_node *n, const keel_spec *value)
{
    const int64_t bytes = keel_row_count(value) * (int64_t)keel_dtype_size(n->held);
    int to = 16;
    while (bytes % to) to /= 2;
    return to;
}

/* The bytes of a piece of scratch; the next one begins aligned for any library. */
static inline int64_t cuda_piece(int64_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* ---- rounded ----------------------------------------------------------------------------------
 */

template <class T>
static __global__ void __launch_bounds__(CUDA_THREADS)
    round_kernel(T *to, const float *from, int64_t n)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t i = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; i < n; i += step)
        to[i] = to_value<T>(from[i]);
}

/* `n` weights as values of type T, which are float32 as they are: else in `room`. */
template <class T>
static const void *cuda_rounded(const keel_call *c, const void *weights, int64_t n, void *room)
{
    if (sizeof(T) == sizeof(float)) return weights;
    cuda_launch(c, round_kernel<T>, cuda_blocks(n), CUDA_THREADS, 0, static_cast<T *>(room),
                static_cast<const float *>(weights), n);
    return room;
}

/* ---- biases -----------------------------------------------------------------------------------
 */

template <class T>
static __global__ void __launch_bounds__(CUDA_THREADS)
    biases_kernel(T *to, const float *bias, int64_t n, int64_t k)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS, by = step % k;
    int64_t i = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x, column = i % k;
    for (; i < n; i += step) {
        to[i] = to_value<T>(bias[column]);
        column += by;
        if (column >= k) column -= k;
    }
}

/* The bias, weight 1, in each place of the output: a product is then added to it. */
template <class T> static void cuda_fill(const keel_call *c)
{
    const int64_t n = cuda_count(c), k = c->node->weight[1].shape.dim[0];
    cuda_launch(c, biases_kernel<T>, cuda_blocks(n), CUDA_THREADS, 0, cuda_out<T>(c),
                static_cast<const float *>(c->weight[1]), n, k);
}

#endif
