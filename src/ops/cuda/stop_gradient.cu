/* See ops/stop_gradient.c. */
#include "ops/cuda/_move.h"

namespace
{
template <class T> void forward(const keel_call *c)
{
    if (cuda_out<T>(c) != cuda_in<T>(c, 0))
        move(c, cuda_out<T>(c), cuda_in<T>(c, 0), move_rows(cuda_count(c), 1, 1), false);
}
} // namespace

CUDA_KERNEL(stop_gradient) = { .op = &keel_op_stop_gradient,
                               .name = "cuda",
                               .prepare = cuda_always,
                               .run = { forward<float> },
                               .narrow = { forward<bf16> },
                               .half = { forward<f16> } };
