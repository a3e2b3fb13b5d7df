/* See ops/argsort.c. */
#include "ops/cuda/_move.h"
#include "ops/cuda/_order.h"

namespace
{
template <class T> struct names {
    T *y;
    int64_t inner;
    __device__ __forceinline__ void operator()(int64_t begin, int64_t place, int64_t from) const
    {
        y[begin + place * inner] = to_value<T>((float)from);
    }
};

template <class T> void forward(const keel_call *c)
{
    order_each(c, cuda_in<T>(c, 0), names<T>{ cuda_out<T>(c), axis_lines_of(c).inner });
}

template <class T> void backward(const keel_call *c)
{
    no_gradient<T>(c, 0);
}
} // namespace

CUDA_KERNEL(argsort) = { .op = &keel_op_argsort,
                         .name = "cuda",
                         .prepare = order_prepare,
                         .run = { forward<float>, backward<float> },
                         .narrow = { forward<bf16>, backward<bf16> },
                         .half = { forward<f16>, backward<f16> } };
