/* See fold.h. A thread has one number of a record, or the two of a channel, through all pushes, so
 * the order of additions is the tree's, and the bits are those of the host: products are rounded
 * before they are added. */
#include "device/cuda/fold.h"

namespace
{
struct pushes {
    double *stack;
    const double *leaf;
    int64_t length, places;
    int rows, depth;
    bool upward;
    uint8_t closes[KEEL_FOLD_ROWS];
    int32_t held[KEEL_FOLD_STACK];
};

/* One number of a record, which is added. */
struct adding {
    static const int PARTS = 1;
    __device__ static void join(double *out, const double *a, const double *b, double, double,
                                double)
    {
        out[0] = a[0] + b[0];
    }
};

/* Mean and sum of squared deviations of a channel: as graph/moments.c. */
struct moments {
    static const int PARTS = 2;
    __device__ static void join(double *out, const double *a, const double *b, double left,
                                double right, double places)
    {
        const double share = right / (left + right);
        const double weight = times(times(left, share), places);
        const double d = b[0] - a[0], mean = a[0] + times(d, share);
        out[1] = a[1] + b[1] + times(times(d, d), weight);
        out[0] = mean;
    }
};

/* Thread k has number k of each part. */
template <class F> __global__ void push(pushes p)
{
    const int64_t n = p.length / F::PARTS, stride = p.length + 1;
    const int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    double top[F::PARTS], below[F::PARTS];
    int32_t held[KEEL_FOLD_STACK];
    int depth = p.depth;
    if (k >= n) return;
    for (int i = 0; i < depth; i++) held[i] = p.held[i];
    for (int i = 0; i < p.rows; i++) {
        const double *leaf = p.leaf + (p.upward ? i : p.rows - 1 - i) * p.length + k;
        for (int j = 0; j < F::PARTS; j++) top[j] = leaf[j * n];
        held[depth] = 1;
        for (int c = p.closes[i]; c > 0; c--, depth--) {
            const double *at = p.stack + (depth - 1) * stride + 1 + k;
            const double a = held[depth - 1], b = held[depth];
            for (int j = 0; j < F::PARTS; j++) below[j] = at[j * n];
            if (p.upward)
                F::join(top, below, top, a, b, (double)p.places);
            else
                F::join(top, top, below, b, a, (double)p.places);
            held[depth - 1] += held[depth];
        }
        double *to = p.stack + depth * stride;
        for (int j = 0; j < F::PARTS; j++) to[1 + k + j * n] = top[j];
        if (k == 0) to[0] = held[depth];
        depth++;
    }
}
} // namespace

const char *keel_cuda_fold(cudaStream_t stream, const keel_device_fold *f)
{
    const int threads = 128;
    const int64_t n = f->moments ? f->length / 2 : f->length;
    const dim3 grid((unsigned)((n + threads - 1) / threads)), block(threads);
    pushes p = {};
    p.stack = f->stack;
    p.leaf = f->leaf;
    p.length = f->length;
    p.places = f->places;
    p.rows = f->rows;
    p.depth = f->depth;
    p.upward = f->upward;
    for (int i = 0; i < f->rows; i++) p.closes[i] = f->closes[i];
    for (int i = 0; i < f->depth; i++) p.held[i] = f->held[i];
    return f->moments ? gpu_launch(push<moments>, grid, block, 0, stream, p)
                      : gpu_launch(push<adding>, grid, block, 0, stream, p);
}
