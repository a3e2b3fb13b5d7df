/* See ops/sorted.c. */
#include "ops/cuda/_order.h"

namespace
{
template <class T> struct puts {
    T *y;
    const T *x;
    int64_t inner;
    __device__ __forceinline__ void operator()(int64_t begin, int64_t place, int64_t from) const
    {
        y[begin + place * inner] = x[begin + from * inner];
    }
};

template <class T> struct returns {
    T *dx;
    const T *dy;
    int64_t inner;
    bool adds;
    __device__ __forceinline__ void operator()(int64_t begin, int64_t place, int64_t from) const
    {
        const float g = to_f(dy[begin + place * inner]);
        T *to = dx + begin + from * inner;
        *to = to_value<T>(adds ? to_f(*to) + g : g);
    }
};

template <class T> void forward(const keel_call *c)
{
    const T *x = cuda_in<T>(c, 0);
    order_each(c, x, puts<T>{ cuda_out<T>(c), x, axis_lines_of(c).inner });
}

template <class T> void backward(const keel_call *c)
{
    if (!c->in_grad[0]) return;
    order_each(c, cuda_in<T>(c, 0),
               returns<T>{ cuda_in_grad<T>(c, 0), cuda_out_grad<T>(c), axis_lines_of(c).inner,
                           c->in_adds[0] });
}
} // namespace

CUDA_KERNEL(sorted) = { .op = &keel_op_sorted,
                        .name = "cuda",
                        .prepare = order_prepare,
                        .run = { forward<float>, backward<float> },
                        .narrow = { forward<bf16>, backward<bf16> },
                        .half = { forward<f16>, backward<f16> } };
