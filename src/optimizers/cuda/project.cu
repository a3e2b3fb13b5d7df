/* See device/cuda/move.h. A block has a vector, and its threads are the lanes of
 * tensor/projection.h, so the bits are those of the host. */
#include "device/cuda/move.h"

namespace
{
/* Dims of a weight, the last first: places along them lie `step` elements apart. */
struct dims {
    int n;
    int64_t dim[KEEL_RANK_MAX], step[KEEL_RANK_MAX];
};

__device__ __forceinline__ int64_t offset_of(const dims &d, int64_t place)
{
    int64_t offset = 0;
#ifdef __CUDACC__
#pragma unroll /* what a variable indexes would lie in memory of the thread */
#endif
    for (int i = 0; i < KEEL_RANK_MAX; i++) {
        if (i >= d.n) break;
        offset += place % d.dim[i] * d.step[i];
        place /= d.dim[i];
    }
    return offset;
}

template <class T> __global__ void non_negative_kernel(T *w, int64_t n)
{
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
        if (w[i] < 0) w[i] = 0;
}

template <class T>
__global__ void __launch_bounds__(KEEL_PROJECT_LANES)
    lengths_kernel(const keel_projection p, const dims across, const dims along, int64_t length_of,
                   T *w)
{
    SHARED(double, squares, KEEL_PROJECT_LANES);
    const int lanes = (int)blockDim.x, lane = (int)threadIdx.x;
    T *vector = w + offset_of(across, blockIdx.x);
    double sum = 0;
    for (int64_t i = lane; i < length_of; i += lanes) {
        const double x = (double)vector[offset_of(along, i)];
        sum += times(x, x);
    }
    squares[lane] = sum;
    for (int by = lanes / 2; by > 0; by /= 2) {
        __syncthreads();
        if (lane < by) squares[lane] += squares[lane + by];
    }
    __syncthreads();
    const double length = sqrt(squares[0]);
    const double near = fmax(fmin(length, p.most), p.least);
    const double scale =
        (times(p.rate, near) + times(1 - p.rate, length)) / (KEEL_LEAST_LENGTH + length);
    for (int64_t i = lane; i < length_of; i += lanes) {
        T *x = vector + offset_of(along, i);
        *x = (T)times((double)*x, scale);
    }
}

/* Those dims whose bits are set; neighbours are one. Returns the number of places. */
int64_t choose(const keel_shape *s, unsigned bits, dims *out)
{
    int64_t step = 1, places = 1;
    bool follows = false;
    out->n = 0;
    for (int d = s->rank - 1; d >= 0; step *= s->dim[d], d--) {
        const bool chosen = bits >> d & 1;
        if (chosen && follows)
            out->dim[out->n - 1] *= s->dim[d];
        else if (chosen) {
            out->dim[out->n] = s->dim[d];
            out->step[out->n++] = step;
        }
        if (chosen) places *= s->dim[d];
        follows = chosen;
    }
    return places;
}

template <class T> const char *project(cudaStream_t stream, const keel_device_project *p)
{
    dims across, along;
    T *w = static_cast<T *>(p->w);
    const int64_t vectors = choose(&p->shape, ~p->how.over, &across);
    const int64_t length = choose(&p->shape, p->how.over, &along), n = vectors * length;
    const int most = KEEL_PROJECT_LANES;
    if (n == 0) return nullptr;
    if (p->how.non_negative) {
        const int64_t blocks = (n + most - 1) / most;
        const char *why = gpu_launch(non_negative_kernel<T>, dim3(gpu_blocks(blocks, 4096)),
                                     dim3(most), 0, stream, w, n);
        if (why) return why;
    }
    if (!p->how.lengths) return nullptr;
    int lanes = GPU_WARP; /* those beyond the length would add 0 */
    while (lanes < most && lanes < length) lanes *= 2;
    return gpu_launch(lengths_kernel<T>, dim3((unsigned)vectors), dim3(lanes), 0, stream, p->how,
                      across, along, length, w);
}
} // namespace

const char *keel_cuda_project(cudaStream_t stream, const keel_device_project *p)
{
    return p->real == KEEL_FLOAT64 ? project<double>(stream, p) : project<float>(stream, p);
}
