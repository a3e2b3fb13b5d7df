/* See ops/argmax.c. The largest of keys that hold the number above the place, counted from the end:
 * so of equal numbers the first is found, whatever the order in which they are compared. */
#include "ops/cuda/_axis.h"
#include "ops/cuda/_move.h"

namespace
{
struct larger {
    __device__ __forceinline__ uint64_t operator()(uint64_t a, uint64_t b) const
    {
        return a > b ? a : b;
    }
};

/* A NaN is the smallest, but nothing is above the first
 * element if it is one. */
__device__ __forceinline__ uint64_t key_of(float x, int64_t place)
{
    const unsigned number = x == x ? ascending(x) : place == 0 ? UINT32_MAX : 0;
    return (uint64_t)number << 32 | (uint32_t) ~(uint32_t)place;
}

template <int WIDTH, class T>
__global__ void __launch_bounds__(CUDA_THREADS) forward_kernel(T *y, const T *x, const axis_lines l)
{
    typedef line_of_threads<WIDTH> threads;
    SHARED(uint64_t, room, 33);
    for (int64_t line = threads::first_line(); line < l.lines; line += threads::step()) {
        const int64_t begin = l.begin(line);
        uint64_t best = 0;
        for (int64_t j = threads::number(); j < l.n; j += WIDTH)
            best = larger()(best, key_of(to_f(x[begin + j * l.inner]), j));
        best = threads::fold(best, room, larger());
        if (threads::number() == 0) y[line] = to_value<T>((float)(uint32_t) ~(uint32_t)best);
    }
}

template <class T> void forward(const keel_call *c)
{
    axis_forward<T>(c, [](auto width) { return forward_kernel<width(), T>; });
}

template <class T> void backward(const keel_call *c)
{
    no_gradient<T>(c, 0);
}

keel_status prepare(keel_prepare *p)
{
    const axis_lines l = axis_lines_of(p->node, p->node->in[0], p->rows);
    return l.n > UINT32_MAX ? KEEL_EUNSUP : cuda_always(p);
}
} // namespace

CUDA_KERNEL(argmax) = { .op = &keel_op_argmax,
                        .name = "cuda",
                        .prepare = prepare,
                        .run = { forward<float>, backward<float> },
                        .narrow = { forward<bf16>, backward<bf16> },
                        .half = { forward<f16>, backward<f16> } };
