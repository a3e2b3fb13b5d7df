/* See ops/band.c. */
#include "ops/cuda/_move.h"
extern "C" {
#include "ops/band.h"
}

namespace
{
struct bands {
    int64_t count, height, width, low, high;
};

/* to = from inside of the band, else 0; or += */
template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    band_kernel(T *to, const T *from, const bands b, bool adds)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < b.count; t += step) {
        int64_t rest = t;
        const int64_t column = take(&rest, b.width), off = column - take(&rest, b.height);
        if (off >= b.low && off <= b.high)
            move_put(to + t, from + t, 1, adds);
        else if (!adds)
            to[t] = to_value<T>(0);
    }
}

template <class T> void run(const keel_call *c, T *to, const T *from, bool adds)
{
    const keel_band_args *a = cuda_args<keel_band_args>(c);
    const keel_shape &s = c->node->in[0].shape;
    const bands b = { cuda_count(c), s.dim[s.rank - 2], s.dim[s.rank - 1], a->low, a->high };
    cuda_launch(c, band_kernel<T>, cuda_blocks(b.count), CUDA_THREADS, 0, to, from, b, adds);
}

template <class T> void forward(const keel_call *c)
{
    run(c, cuda_out<T>(c), cuda_in<T>(c, 0), false);
}

template <class T> void backward(const keel_call *c)
{
    if (c->in_grad[0]) run(c, cuda_in_grad<T>(c, 0), cuda_out_grad<T>(c), c->in_adds[0]);
}
} // namespace

MOVE_KERNEL(band);
