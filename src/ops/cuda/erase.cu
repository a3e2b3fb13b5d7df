/* See ops/erase.c. A thread has a row's rectangle, and then an element. */
#include "ops/cuda/_chance.h"
#include <math.h>
extern "C" {
#include "ops/erase.h"
}

namespace
{
const unsigned NOISE_BLOCK = 2; /* of draws: behind the six of the rectangle */

struct image {
    keel_erase_args a;
    cuda_chance chance;
    int64_t rows, dim[3];
};

struct rectangle { /* places from `from` to before `to`, of dims 0 and 1 */
    int64_t from[2], to[2];
};

__device__ rectangle rectangle_of(const image &n, int64_t row)
{
    rectangle r = { { 0, 0 }, { 0, 0 } };
    if (!(cuda_draw(n.chance, row, 5, n.a.range[3]) < cuda_draw(n.chance, row, 4, n.a.range[2])))
        return r;
    for (unsigned d = 0; d < 2; d++) {
        const double all = (double)n.dim[d];
        const double length = times(sqrt(cuda_draw(n.chance, row, 1 - d, n.a.range[0])), all);
        const double from = times(cuda_draw(n.chance, row, 3 - d, n.a.range[1]), all - length);
        r.from[d] = (int64_t)ceil(from);
        r.to[d] = (int64_t)ceil(from + length);
    }
    return r;
}

__global__ void __launch_bounds__(CUDA_THREADS, 1) rectangles_kernel(rectangle *r, const image n)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < n.rows; t += step)
        r[t] = rectangle_of(n, t);
}

struct spot {
    int64_t row, k, channel; /* k: the element of the row */
    bool in;
};

__device__ __forceinline__ spot spot_of(const rectangle *r, const image &n, int64_t t)
{
    spot s;
    s.row = t;
    s.channel = take(&s.row, n.dim[2]);
    const int64_t j = take(&s.row, n.dim[1]), i = take(&s.row, n.dim[0]);
    const rectangle &own = r[s.row];
    s.k = (i * n.dim[1] + j) * n.dim[2] + s.channel;
    s.in = i >= own.from[0] && i < own.to[0] && j >= own.from[1] && j < own.to[1];
    return s;
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    forward_kernel(T *y, const T *x, const rectangle *r, int64_t count, const image n)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < count; t += step) {
        const spot s = spot_of(r, n, t);
        if (!s.in) {
            y[t] = x[t];
            continue;
        }
        const int fill = n.a.n_fill > 1 ? (int)s.channel : 0;
        double v = fill == 0 ? n.a.fill[0] : fill == 1 ? n.a.fill[1] : n.a.fill[2];
        if (n.a.n_fill == 0) {
            unsigned word[4];
            cuda_philox(word, n.chance, s.row, NOISE_BLOCK + (unsigned)(s.k / 4));
            v = cuda_normal(word, (unsigned)(s.k % 4)) * n.a.values.high;
        }
        y[t] = to_value<T>((float)fmin(fmax(v, n.a.values.low), n.a.values.high));
    }
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    backward_kernel(T *dx, const T *dy, const rectangle *r, int64_t count, const image n, bool adds)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < count; t += step) {
        const float g = spot_of(r, n, t).in ? 0 : to_f(dy[t]);
        dx[t] = to_value<T>(adds ? to_f(dx[t]) + g : g);
    }
}

const rectangle *rectangles_of(const keel_call *c, image *n)
{
    const int64_t *dim = c->node->in[0].shape.dim;
    rectangle *r = static_cast<rectangle *>(c->scratch);
    *n = { *cuda_args<keel_erase_args>(c), cuda_chance_of(c), c->rows, { dim[0], dim[1], dim[2] } };
    cuda_launch(c, rectangles_kernel, cuda_blocks(c->rows), CUDA_THREADS, 0, r, *n);
    return r;
}

template <class T> void forward(const keel_call *c)
{
    image n;
    const rectangle *r = rectangles_of(c, &n);
    cuda_launch(c, forward_kernel<T>, cuda_blocks(cuda_count(c)), CUDA_THREADS, 0, cuda_out<T>(c),
                cuda_in<T>(c, 0), r, cuda_count(c), n);
}

template <class T> void backward(const keel_call *c)
{
    image n;
    if (!c->in_grad[0]) return;
    const rectangle *r = rectangles_of(c, &n);
    cuda_launch(c, backward_kernel<T>, cuda_blocks(cuda_count(c)), CUDA_THREADS, 0,
                cuda_in_grad<T>(c, 0), cuda_out_grad<T>(c), r, cuda_count(c), n, c->in_adds[0]);
}

keel_status prepare(keel_prepare *p)
{
    return cuda_prepare(p, p->rows * (int64_t)sizeof(rectangle));
}
} // namespace

CUDA_KERNEL(erase) = { .op = &keel_op_erase,
                       .name = "cuda",
                       .prepare = prepare,
                       .run = { forward<float>, backward<float> },
                       .narrow = { forward<bf16>, backward<bf16> },
                       .half = { forward<f16>, backward<f16> } };
