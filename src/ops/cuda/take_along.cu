/* See ops/take_along.c. An element of the input adds up what was taken from it, in the order of the
 * places, so that the bits are the reference's: it looks through a few places, and finds its own
 * among many that have been sorted. */
#include "ops/cuda/_axis.h"
#include "ops/cuda/_move.h"
#include "ops/cuda/_sort.h"

namespace
{
const int64_t FEW = 64; /* places of a line that are looked through */

/* Both have as many lines, and as many of them side by side. */
struct takes {
    axis_lines x, y;
};

takes takes_of(const keel_node *n, int64_t rows)
{
    return { axis_lines_of(n, n->in[0], rows), axis_lines_of(n, n->in[1], rows) };
}

__device__ __forceinline__ int64_t place_of(float at, int64_t n)
{
    if (!(at > -(float)n)) return 0;
    const int64_t i = at < (float)n ? (int64_t)at : n - 1;
    return i < 0 ? i + n : i;
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    forward_kernel(T *y, const T *x, const T *places, const takes s)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS, all = s.y.lines * s.y.n;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < all; t += step) {
        int64_t outer = t;
        const int64_t side = take(&outer, s.y.inner);
        take(&outer, s.y.n);
        const int64_t place = place_of(to_f(places[t]), s.x.n);
        y[t] = x[(outer * s.x.n + place) * s.x.inner + side];
    }
}

template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    keys_kernel(uint64_t *key, const T *places, const takes s)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS, all = s.y.lines * s.y.n;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < all; t += step) {
        int64_t line = t;
        const int64_t j = take(&line, s.y.n);
        const float at = to_f(places[s.y.begin(line) + j * s.y.inner]);
        key[t] = (uint64_t)place_of(at, s.x.n) << 32 | (uint64_t)j;
    }
}

/* key: NULL, or those of each line in order. */
template <class T>
__global__ void __launch_bounds__(CUDA_THREADS)
    backward_kernel(T *dx, const T *places, const T *dy, const uint64_t *key, const takes s,
                    bool adds)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS, all = s.x.lines * s.x.n;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < all; t += step) {
        int64_t outer = t;
        const int64_t side = take(&outer, s.x.inner), own = take(&outer, s.x.n);
        const int64_t begin = outer * s.y.n * s.y.inner + side;
        float sum = adds ? to_f(dx[t]) : 0;
        if (key) {
            const uint64_t *line = key + (outer * s.y.inner + side) * s.y.n;
            const uint64_t first = (uint64_t)own << 32;
            for (int64_t k = sort_smaller(line, s.y.n, first);
                 k < s.y.n && line[k] >> 32 == (uint64_t)own; k++)
                sum += to_f(dy[begin + (int64_t)(uint32_t)line[k] * s.y.inner]);
        } else {
            for (int64_t j = 0; j < s.y.n; j++) {
                const int64_t at = begin + j * s.y.inner;
                if (place_of(to_f(places[at]), s.x.n) == own) sum += to_f(dy[at]);
            }
        }
        dx[t] = to_value<T>(sum);
    }
}

template <class T> void forward(const keel_call *c)
{
    cuda_launch(c, forward_kernel<T>, cuda_blocks(cuda_count(c)), CUDA_THREADS, 0, cuda_out<T>(c),
                cuda_in<T>(c, 0), cuda_in<T>(c, 1), takes_of(c->node, c->rows));
}

template <class T> void backward(const keel_call *c)
{
    const takes s = takes_of(c->node, c->rows);
    const T *places = cuda_in<T>(c, 1), *dy = cuda_out_grad<T>(c);
    uint64_t *keys = static_cast<uint64_t *>(c->scratch);
    const uint64_t *sorted = nullptr;
    no_gradient<T>(c, 1);
    if (!c->in_grad[0]) return;
    if (s.y.n > FEW) {
        cuda_launch(c, keys_kernel<T>, cuda_blocks(s.y.lines * s.y.n), CUDA_THREADS, 0, keys,
                    places, s);
        sorted = sort_keys(c, keys, s.y.n, s.y.lines);
    }
    cuda_launch(c, backward_kernel<T>, cuda_blocks(s.x.lines * s.x.n), CUDA_THREADS, 0,
                cuda_in_grad<T>(c, 0), places, dy, sorted, s, c->in_adds[0]);
}

keel_status prepare(keel_prepare *p)
{
    const takes s = takes_of(p->node, p->rows);
    if (s.x.n >= UINT32_MAX || s.y.n > UINT32_MAX || sort_blocks(s.y.n, s.y.lines) > INT32_MAX)
        return KEEL_EUNSUP;
    const bool sorts = p->pass == KEEL_BACKWARD && s.y.n > FEW;
    return cuda_prepare(p, sorts ? sort_scratch(s.y.n * s.y.lines) : 0);
}
} // namespace

CUDA_KERNEL(take_along) = { .op = &keel_op_take_along,
                            .name = "cuda",
                            .prepare = prepare,
                            .run = { forward<float>, backward<float> },
                            .narrow = { forward<bf16>, backward<bf16> },
                            .half = { forward<f16>, backward<f16> } };
