/* See device/cuda/move.h. A block has a tile, and its threads are the lanes of
 * optimizers/_measure.c, so the bits are those of the host. */
#include "device/cuda/move.h"
#include <float.h>

namespace
{
template <class T, bool SQUARES>
__global__ void __launch_bounds__(KEEL_MEASURE_LANES)
    check_kernel(keel_device_vote *vote, T *g, const keel_device_tile *tiles, T scale)
{
    SHARED(double, squares, KEEL_MEASURE_LANES);
    SHARED(int, infinite, KEEL_MEASURE_LANES);
    const keel_device_tile tile = tiles[blockIdx.x];
    const int lane = (int)threadIdx.x;
    double sum = 0;
    int bad = 0;
    for (int64_t i = tile.first + lane; i < tile.first + tile.count; i += KEEL_MEASURE_LANES) {
        const T x = g[i] * scale;
        if (scale != 1) g[i] = x;
        bad |= !(fabs((double)x) <= DBL_MAX);
        if (SQUARES) sum += times((double)x, (double)x);
    }
    squares[lane] = sum;
    infinite[lane] = bad;
    for (int by = KEEL_MEASURE_LANES / 2; by > 0; by /= 2) {
        __syncthreads();
        if (lane >= by) continue;
        squares[lane] += squares[lane + by];
        infinite[lane] |= infinite[lane + by];
    }
    if (lane > 0) return;
    vote[blockIdx.x].squares = squares[0];
    vote[blockIdx.x].bad = infinite[0];
}

template <class T> const char *check(cudaStream_t stream, const keel_device_check *c)
{
    const dim3 grid((unsigned)c->n_tile), block(KEEL_MEASURE_LANES);
    return gpu_launch(c->squares ? check_kernel<T, true> : check_kernel<T, false>, grid, block, 0,
                      stream, c->vote, static_cast<T *>(c->g), c->tile, (T)c->scale);
}
} // namespace

const char *keel_cuda_check(cudaStream_t stream, const keel_device_check *c)
{
    if (c->n_tile == 0) return nullptr;
    return c->real == KEEL_FLOAT64 ? check<double>(stream, c) : check<float>(stream, c);
}
