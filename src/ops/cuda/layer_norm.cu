/* See ops/layer_norm.c. */
#include "ops/cuda/_layer_norm.h"

namespace
{
template <class T> void forward(const keel_call *c)
{
    norm_args<T> a = norm_args_of<T>(c);
    a.a = cuda_in<T>(c, 0);
    a.y = cuda_out<T>(c);
    norm_forward(c, a);
}

template <class T> void backward(const keel_call *c)
{
    norm_backward<T>(c, cuda_in<T>(c, 0), cuda_out_grad<T>(c), nullptr);
}

template <class T> void weights(const keel_call *c)
{
    norm_weights(c, cuda_in<T>(c, 0), cuda_out_grad<T>(c));
}
} // namespace

NORM_KERNEL(layer_norm);
