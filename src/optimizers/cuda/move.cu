/* See device/cuda/move.h. A thread has elements at a stride, each by itself, so the bits are those
 * of the host. */
#ifndef REAL
#include "device/cuda/move.h"

namespace
{
__device__ __forceinline__ float root(float x)
{
    return sqrtf(x);
}

__device__ __forceinline__ double root(double x)
{
    return sqrt(x);
}

#define RULE         __device__ __forceinline__
#define TIMES(x, y)  times(x, y)
#define REAL_SQRT(x) root(x)
#define KERNEL(rule, slots)                                                                        \
    __global__ void REAL_(rule##_kernel)(REAL_(rule_t) f, int64_t n, REAL * w, const REAL *g,      \
                                         REAL *a, REAL *b, REAL *c)                                \
    {                                                                                              \
        const int64_t step = (int64_t)gridDim.x * blockDim.x;                                      \
        (void)a, (void)b, (void)c;                                                                 \
        for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)         \
            REAL_(rule)(&f, g[i], &w[i] RULE_SLOTS_##slots);                                       \
    }

#define REAL_FILE "optimizers/cuda/move.cu"
#include "ops/real.h"
} // namespace

const char *keel_cuda_move(cudaStream_t stream, const keel_device_move *m)
{
    if (m->count == 0) return nullptr;
    return m->real == KEEL_FLOAT64 ? move_f64(stream, m) : move_f32(stream, m);
}

#else
#include "optimizers/rules.h"
KERNEL(plain, 0)
KERNEL(momentum, 1)
KERNEL(momentum_only, 1)
KERNEL(nesterov, 1)
KERNEL(adam, 2)
KERNEL(amsgrad, 3)
KERNEL(rmsprop, 1)
KERNEL(rmsprop_momentum, 2)
KERNEL(rmsprop_centered, 2)
KERNEL(rmsprop_centered_momentum, 3)
KERNEL(adagrad, 1)
KERNEL(adadelta, 2)
KERNEL(adamax, 2)
KERNEL(nadam, 2)
KERNEL(lion, 1)
KERNEL(ftrl, 2)
KERNEL(schedule_free, 2)
KERNEL(lamb, 2)
KERNEL(lamb_step, 2)
KERNEL(sum, 0)
KERNEL(mean, 0)
KERNEL(average, 0)
KERNEL(penalty, 0)

const char *REAL_(move)(cudaStream_t stream, const keel_device_move *m)
{
    /* by keel_rule */
    static void (*const kernel[KEEL_RULES])(REAL_(rule_t), int64_t, REAL *, const REAL *, REAL *,
                                            REAL *, REAL *) = {
        REAL_(plain_kernel),
        REAL_(momentum_kernel),
        REAL_(momentum_only_kernel),
        REAL_(nesterov_kernel),
        REAL_(adam_kernel),
        REAL_(amsgrad_kernel),
        REAL_(rmsprop_kernel),
        REAL_(rmsprop_momentum_kernel),
        REAL_(rmsprop_centered_kernel),
        REAL_(rmsprop_centered_momentum_kernel),
        REAL_(adagrad_kernel),
        REAL_(adadelta_kernel),
        REAL_(adamax_kernel),
        REAL_(nadam_kernel),
        REAL_(lion_kernel),
        REAL_(ftrl_kernel),
        REAL_(schedule_free_kernel),
        REAL_(lamb_kernel),
        REAL_(lamb_step_kernel),
        REAL_(sum_kernel),
        REAL_(mean_kernel),
        REAL_(average_kernel),
        REAL_(penalty_kernel),
    };
    const int threads = 256;
    const int64_t blocks = (m->count + threads - 1) / threads;
    const dim3 grid((unsigned)(blocks < 4096 ? blocks : 4096)), block(threads);
    return gpu_launch(kernel[m->rule], grid, block, 0, stream, REAL_(rule_of)(&m->number), m->count,
                      static_cast<REAL *>(m->w), static_cast<const REAL *>(m->g),
                      static_cast<REAL *>(m->slot[0]), static_cast<REAL *>(m->slot[1]),
                      static_cast<REAL *>(m->slot[2]));
}
#undef RULE_SLOTS_0
#undef RULE_SLOTS_1
#undef RULE_SLOTS_2
#undef RULE_SLOTS_3
#endif
