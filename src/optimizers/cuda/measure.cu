/* See device/cuda/move.h. A block has a tile, and its threads are the lanes of
 * optimizers/_measure.c, so the bits are those of the host. */
#include "device/cuda/move.h"

namespace
{
template <class T>
__global__ void __launch_bounds__(KEEL_MEASURE_LANES)
    measure_kernel(double *sums, const T *w, int64_t count, int64_t tile)
{
    SHARED(double, size, KEEL_MEASURE_LANES);
    SHARED(double, squares, KEEL_MEASURE_LANES);
    const int64_t first = (int64_t)blockIdx.x * tile;
    const int64_t end = count - first < tile ? count : first + tile;
    const int lane = (int)threadIdx.x;
    double a = 0, b = 0;
    for (int64_t i = first + lane; i < end; i += KEEL_MEASURE_LANES) {
        const double x = (double)w[i];
        a += x < 0 ? -x : x;
        b += times(x, x);
    }
    size[lane] = a;
    squares[lane] = b;
    for (int by = KEEL_MEASURE_LANES / 2; by > 0; by /= 2) {
        __syncthreads();
        if (lane >= by) continue;
        size[lane] += size[lane + by];
        squares[lane] += squares[lane + by];
    }
    if (lane > 0) return;
    sums[2 * blockIdx.x] = size[0];
    sums[2 * blockIdx.x + 1] = squares[0];
}

template <class T> const char *measure(cudaStream_t stream, const keel_device_measure *m)
{
    const dim3 grid((unsigned)((m->count + m->tile - 1) / m->tile)), block(KEEL_MEASURE_LANES);
    return gpu_launch(measure_kernel<T>, grid, block, 0, stream, m->sums,
                      static_cast<const T *>(m->w), m->count, m->tile);
}
} // namespace

const char *keel_cuda_measure(cudaStream_t stream, const keel_device_measure *m)
{
    if (m->count == 0) return nullptr;
    return m->real == KEEL_FLOAT64 ? measure<double>(stream, m) : measure<float>(stream, m);
}
