/* See ops/reshape.c. */
#include "ops/cuda/_move.h"

namespace
{
template <class T> void move_all(const keel_call *c, T *to, const T *from, bool adds)
{
    if (to && (to != from || adds)) move(c, to, from, move_rows(cuda_count(c), 1, 1), adds);
}

template <class T> void forward(const keel_call *c)
{
    move_all(c, cuda_out<T>(c), cuda_in<T>(c, 0), false);
}

template <class T> void backward(const keel_call *c)
{
    T *dx = cuda_in_grad<T>(c, 0);
    const T *dy = cuda_out_grad<T>(c);
    if (dx != dy) move_all(c, dx, dy, c->in_adds[0]);
}
} // namespace

MOVE_KERNEL(reshape);
