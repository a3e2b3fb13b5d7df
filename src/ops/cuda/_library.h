/* What kernels by a library share: what they are asked for, and what they run around its call. The
 * gradient of a bias is a sum over places, and beside narrow values weights are rounded to their
 * type, since a library multiplies values of one type. */
#ifndef KEEL_OPS_CUDA_LIBRARY_H
#define KEEL_OPS_CUDA_LIBRARY_H
#include "device/cuda/libraries.h"
#include "ops/cuda/_kernel.h"

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

/* ---- sums -------------------------------------------------------------------------------------
 *
 * Places are cut into stretches of one size, so that no sum depends on the grid. The sums of
 * stretches are places again, until one stretch is left.
 */

static const int64_t PLACES_STRETCH = 128;
static const int PLACES_LINES = CUDA_THREADS / GPU_WARP; /* threads that share a stretch */

static __device__ __forceinline__ double place_value(double x)
{
    return x;
}
template <class T> static __device__ __forceinline__ double place_value(T x)
{
    return to_f(x);
}

/* A block has a warp of columns of one stretch. */
template <class T, class R>
static __global__ void __launch_bounds__(CUDA_THREADS)
    stretch_kernel(R *to, const T *from, int64_t places, int64_t k, int64_t chunks, int64_t blocks,
                   bool adds)
{
    SHARED(double, room, CUDA_THREADS);
    const int lane = (int)threadIdx.x % GPU_WARP, line = (int)threadIdx.x / GPU_WARP;
    for (int64_t b = blockIdx.x; b < blocks; b += gridDim.x) {
        const int64_t stretch = b / chunks, column = b % chunks * GPU_WARP + lane;
        const int64_t first = stretch * PLACES_STRETCH;
        const int64_t end = first + PLACES_STRETCH < places ? first + PLACES_STRETCH : places;
        double sum = 0;
        for (int64_t p = first + line; column < k && p < end; p += PLACES_LINES)
            sum += place_value(from[p * k + column]);
        room[threadIdx.x] = sum;
        __syncthreads();
        if (line == 0 && column < k) {
            sum = 0;
            for (int l = 0; l < PLACES_LINES; l++) sum += room[l * GPU_WARP + lane];
            R *at = to + stretch * k + column;
            *at = (R)(adds ? *at + sum : sum);
        }
        __syncthreads(); /* room is used again */
    }
}

/* Bytes of scratch for the sums of so many places, [places, k]. */
static inline int64_t cuda_places_scratch(int64_t places, int64_t k)
{
    int64_t bytes = 0;
    while (places > PLACES_STRETCH) {
        places = (places + PLACES_STRETCH - 1) / PLACES_STRETCH;
        bytes += cuda_piece(places * k * (int64_t)sizeof(double));
    }
    return bytes;
}

template <class T, class R>
static void stretch_launch(const keel_call *c, R *to, const T *from, int64_t places, int64_t k,
                           bool adds)
{
    const int64_t chunks = (k + GPU_WARP - 1) / GPU_WARP;
    const int64_t blocks = (places + PLACES_STRETCH - 1) / PLACES_STRETCH * chunks;
    const int64_t most = CUDA_BLOCKS * 8;
    cuda_launch(c, stretch_kernel<T, R>, (unsigned)(blocks < most ? blocks : most), CUDA_THREADS, 0,
                to, from, places, k, chunks, blocks, adds);
}

template <class T>
static void places_sum(const keel_call *c, float *to, const T *from, int64_t places, int64_t k,
                       bool adds, void *room)
{
    if (places <= PLACES_STRETCH) return stretch_launch(c, to, from, places, k, adds);
    const int64_t stretches = (places + PLACES_STRETCH - 1) / PLACES_STRETCH;
    double *sums = static_cast<double *>(room);
    stretch_launch(c, sums, from, places, k, false);
    places_sum(c, to, sums, stretches, k, adds,
               static_cast<char *>(room) + cuda_piece(stretches * k * (int64_t)sizeof(double)));
}

#endif
