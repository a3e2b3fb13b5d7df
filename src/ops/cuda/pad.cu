/* See ops/pad.c. */
#include "ops/cuda/_pad.h"
extern "C" {
#include "ops/pad.h"
}

namespace
{
template <class T> void forward(const keel_call *c)
{
    const keel_pad_args *a = cuda_args<keel_pad_args>(c);
    pad_forward<T>(c, a->before, (float)a->value);
}

template <class T> void backward(const keel_call *c)
{
    pad_backward<T>(c, cuda_args<keel_pad_args>(c)->before);
}
} // namespace

MOVE_KERNEL(pad);
