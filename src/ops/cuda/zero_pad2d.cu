/* See ops/zero_pad2d.c. */
#include "ops/cuda/_pad.h"

namespace
{
template <class T> void forward(const keel_call *c)
{
    const keel_zero_pad2d_args *a = cuda_args<keel_zero_pad2d_args>(c);
    const int64_t before[] = { a->pad[0], a->pad[2], 0 };
    pad_forward<T>(c, before, 0);
}

template <class T> void backward(const keel_call *c)
{
    const keel_zero_pad2d_args *a = cuda_args<keel_zero_pad2d_args>(c);
    const int64_t before[] = { a->pad[0], a->pad[2], 0 };
    pad_backward<T>(c, before);
}
} // namespace

MOVE_KERNEL(zero_pad2d);
