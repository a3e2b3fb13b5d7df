/* See device/cuda/move.h. A thread has elements at a stride, each by itself, so the bits are those
 * of the host. Weights share launches, each with blocks of its own: a network has some hundred, and
 * most are small. */
#ifndef REAL
#include "device/cuda/move.h"

namespace
{
#define RULE         __device__ __forceinline__
#define TIMES(x, y)  times(x, y)
#define REAL_SQRT(x) root(x)
const int THREADS = 256, BLOCKS_MOST = 4096; /* of a weight */
const int BATCH_BYTES = 4000;                /* of the parameters of a launch */

#define KERNEL(rule, slots)                                                                        \
    __global__ void REAL_(rule##_kernel)(const REAL_(batch) batch)                                 \
    {                                                                                              \
        int k = 0;                                                                                 \
        while (k + 1 < batch.n && batch.of[k + 1].first <= (int)blockIdx.x) k++;                   \
        const REAL_(item) &of = batch.of[k];                                                       \
        const int64_t step = (int64_t)of.blocks * THREADS;                                         \
        REAL *const w = of.w, *const a = of.slot[0], *const b = of.slot[1], *const c = of.slot[2]; \
        (void)a, (void)b, (void)c;                                                                 \
        for (int64_t i = (int64_t)((int)blockIdx.x - of.first) * THREADS + threadIdx.x;            \
             i < of.count; i += step)                                                              \
            REAL_(rule)(&of.numbers, of.g[i], &w[i] RULE_SLOTS_##slots);                           \
    }

#define REAL_FILE "optimizers/cuda/move.cu"
#include "ops/real.h"
} // namespace

const char *keel_cuda_move(cudaStream_t stream, const keel_device_move *m, int n)
{
    const char *why = nullptr;
    for (int i = 0; i < n && !why;) {
        const bool wide = m[i].real == KEEL_FLOAT64;
        int took = 0;
        why = wide ? move_f64(stream, m + i, n - i, &took) : move_f32(stream, m + i, n - i, &took);
        i += took;
    }
    return why;
}

#else
#include "optimizers/rules.h"
struct REAL_(item) {
    REAL_(rule_t) numbers;
    int64_t count;
    REAL *w;
    const REAL *g;
    REAL *slot[KEEL_MOVE_SLOTS];
    int first, blocks;
};
struct REAL_(batch) {
    REAL_(item) of[BATCH_BYTES / sizeof(REAL_(item))];
    int n;
};

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
KERNEL(muon, 1)
KERNEL(muon_step, 1)
KERNEL(sum, 0)
KERNEL(mean, 0)
KERNEL(average, 0)
KERNEL(penalty, 0)

void REAL_(add)(REAL_(batch) * to, const keel_device_move *m, int first)
{
    const int64_t blocks = (m->count + THREADS - 1) / THREADS;
    REAL_(item) *x = &to->of[to->n++];
    x->numbers = REAL_(rule_of)(&m->number);
    x->count = m->count;
    x->w = static_cast<REAL *>(m->w);
    x->g = static_cast<const REAL *>(m->g);
    for (int k = 0; k < KEEL_MOVE_SLOTS; k++) x->slot[k] = static_cast<REAL *>(m->slot[k]);
    x->first = first;
    x->blocks = (int)gpu_blocks(blocks, BLOCKS_MOST);
}

/* As many of them as one launch may have: *took. */
const char *REAL_(move)(cudaStream_t stream, const keel_device_move *m, int n, int *took)
{
    /* by keel_rule */
    static void (*const kernel[KEEL_RULES])(const REAL_(batch)) = {
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
        REAL_(muon_kernel),
        REAL_(muon_step_kernel),
        REAL_(sum_kernel),
        REAL_(mean_kernel),
        REAL_(average_kernel),
        REAL_(penalty_kernel),
    };
    const int most = (int)(sizeof(REAL_(batch)::of) / sizeof(REAL_(item)));
    REAL_(batch) batch = {};
    int blocks = 0;
    for (*took = 0; *took < n && batch.n < most; ++*took) {
        const keel_device_move *one = &m[*took];
        if (one->rule != m->rule || one->real != m->real) break;
        if (one->count == 0) continue;
        REAL_(add)(&batch, one, blocks);
        blocks += batch.of[batch.n - 1].blocks;
    }
    if (blocks == 0) return nullptr;
    return gpu_launch(kernel[m->rule], dim3((unsigned)blocks), dim3(THREADS), 0, stream, batch);
}
#undef RULE_SLOTS_0
#undef RULE_SLOTS_1
#undef RULE_SLOTS_2
#undef RULE_SLOTS_3
#endif
