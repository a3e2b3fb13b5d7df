/* See ops/add_layer_norm.c: one pass for the sum and what is normalised. */
#include "ops/cuda/_layer_norm.h"

namespace
{
template <class T> void forward(const keel_call *c)
{
    norm_args<T> a = norm_args_of<T>(c);
    a.a = cuda_in<T>(c, 0);
    a.b = cuda_in<T>(c, 1);
    a.sum = cuda_out<T>(c, 0);
    a.y = cuda_out<T>(c, 1);
    norm_forward(c, a);
}

template <class T> void backward(const keel_call *c)
{
    norm_backward<T>(c, cuda_out<T>(c, 0), cuda_out_grad<T>(c, 1), cuda_out_grad<T>(c, 0));
}

template <class T> void weights(const keel_call *c)
{
    norm_weights<T>(c, cuda_out<T>(c, 0), cuda_out_grad<T>(c, 1));
}
} // namespace

NORM_KERNEL(add_layer_norm);
