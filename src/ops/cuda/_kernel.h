/* What every kernel for CUDA begins with: the op's declarations, which are C, and short forms.
 *
 * A kernel is like those of ops/x86: a const keel_kernel at the end of the file with the op's name.
 * The arrays of a call are the host's, and the pointers in them the device's; a run launches on the
 * call's stream and returns. What a run computes for a row has the same bits however many rows the
 * call has: no sum of a row may depend on the grid. */
#ifndef KEEL_OPS_CUDA_KERNEL_H
#define KEEL_OPS_CUDA_KERNEL_H
#include "device/cuda/faults.h"
extern "C" {
#include "ops/args.h"

/* Of the call's device: defined by the plug-in, and by the test for the emulator. */
cudaStream_t keel_cuda_stream(const keel_call *c);
cuda_faults *keel_cuda_faults(const keel_call *c);
}

/* Ends the file of a kernel: CUDA_KERNEL(relu) = { ... }; An op has one of them, so it has no
 * priority, and no instruction set that it needs. */
#define CUDA_KERNEL(stem)                                                                          \
    extern "C" {                                                                                   \
    KEEL_USES_OP(stem);                                                                            \
    extern const keel_kernel keel_kernel_##stem##_cuda;                                            \
    }                                                                                              \
    const keel_kernel keel_kernel_##stem##_cuda

static const int CUDA_THREADS = 256; /* of a block, where nothing else is said */
/* __launch_bounds__(CUDA_THREADS, 1): without the 1 the compiler may spill a register or two so
 * that a multiprocessor has room for one more block. */
/* Enough for the largest GPU; threads then take several turns. */
static const int64_t CUDA_BLOCKS = 132 * 8 * 4;

/* Blocks for `n` threads. */
static inline unsigned cuda_blocks(int64_t n)
{
    return gpu_blocks((n + CUDA_THREADS - 1) / CUDA_THREADS, CUDA_BLOCKS);
}

/* Blocks for `n` pieces of work, each of a whole block. */
static inline unsigned cuda_turns(int64_t n)
{
    return gpu_blocks(n, CUDA_BLOCKS * 8);
}

/* Launches on the call's stream; a failure becomes that of the step. A grid of 0 has nothing to do.
 */
template <class... P, class... A>
static void cuda_launch(const keel_call *c, void (*kernel)(P...), dim3 grid, unsigned threads,
                        size_t shared, A... args)
{
    if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
    const char *why = gpu_launch(kernel, grid, dim3(threads), shared, keel_cuda_stream(c), args...);
    if (why)
        keel_call_failed(c,
                         keel_fail(KEEL_EDEVICE, "layer '%s': the op %s could not be launched: %s",
                                   c->node->layer, c->node->op->name, why));
}

static inline int64_t cuda_count(const keel_call *c) /* elements of output 0 */
{
    return c->rows * keel_row_count(&c->node->out[0]);
}

template <class T> static inline const T *cuda_in(const keel_call *c, int i)
{
    return static_cast<const T *>(c->in[i]);
}

template <class T> static inline T *cuda_out(const keel_call *c, int i = 0)
{
    return static_cast<T *>(c->out[i]);
}

template <class T> static inline const T *cuda_out_grad(const keel_call *c, int i = 0)
{
    return static_cast<const T *>(c->out_grad[i]);
}

template <class T> static inline T *cuda_in_grad(const keel_call *c, int i)
{
    return static_cast<T *>(c->in_grad[i]);
}

template <class T> static inline const T *cuda_args(const keel_call *c)
{
    return static_cast<const T *>(c->node->args);
}

/* What every prepare begins with: kernels are of float32, with bfloat16 and float16 as ways to
 * store values.
 */
static inline keel_status cuda_prepare(keel_prepare *p, int64_t scratch)
{
    if (p->node->real != KEEL_FLOAT32) return KEEL_EUNSUP;
    p->plan = nullptr;
    p->scratch = scratch;
    return KEEL_OK;
}

/* The prepare of a kernel that runs its passes for any node. */
static inline keel_status cuda_always(keel_prepare *p)
{
    return cuda_prepare(p, 0);
}

/* *i % n, and *i becomes *i / n: with 32 bits, where they are enough, which is several times as
 * fast. A GPU divides 64 bits by a function that it calls, for which registers are saved on the
 * stack each time, so the few that need it are divided bit by bit. */
static __device__ __forceinline__ int64_t take(int64_t *i, int64_t n)
{
    const int64_t whole = *i;
    if (((whole | n) >> 32) == 0) {
        const unsigned quotient = (unsigned)whole / (unsigned)n;
        *i = quotient;
        return (unsigned)whole - quotient * (unsigned)n;
    }
    uint64_t quotient = (uint64_t)whole, left = 0;
#ifdef __CUDACC__
#pragma unroll 1
#endif
    for (int bit = 0; bit < 64; bit++) {
        left = left << 1 | quotient >> 63;
        quotient <<= 1;
        if (left >= (uint64_t)n) left -= (uint64_t)n, quotient |= 1;
    }
    *i = (int64_t)quotient;
    return (int64_t)left;
}

/* Divides whole numbers below 2^31 by one that the host knows: by a product and a shift, in place
 * of some twenty instructions (Granlund and Montgomery, 1994). */
struct divider {
    unsigned by, times, shift;

    static divider of(int64_t by)
    {
        unsigned shift = 0;
        while ((int64_t)1 << shift < by) shift++;
        const uint64_t more = ((uint64_t)1 << shift) - (uint64_t)by;
        return { (unsigned)by, (unsigned)((more << 32) / (uint64_t)by + 1), shift };
    }
    __device__ __forceinline__ int quotient(int n) const
    {
        const unsigned high = (unsigned)((uint64_t)(unsigned)n * times >> 32);
        return (int)((high + (unsigned)n) >> shift);
    }
    /* *i % by, and *i becomes *i / by. */
    __device__ __forceinline__ int take(int *i) const
    {
        const int whole = *i;
        *i = quotient(whole);
        return whole - *i * (int)by;
    }
};

/* A whole number for each x that is not NaN, in the order of their sizes; -0 is below 0. Between 0
 * and UINT32_MAX, which are those of no x. */
static __device__ __forceinline__ unsigned ascending(float x)
{
    const unsigned bits = __float_as_uint(x);
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

/* Up to four neighbours, of which `n` exist; the others are 0, and are not written. `wide`: load4
 * may be used. The numbers are the same either way. */
template <class T>
static __device__ __forceinline__ void load_some(float v[4], const T *from, int64_t n, bool wide)
{
    if (wide && n >= 4) {
        load4(v, from);
        return;
    }
    for (int e = 0; e < 4; e++) v[e] = e < n ? to_f(from[e]) : 0;
}

template <class T>
static __device__ __forceinline__ void store_some(T *to, const float v[4], int64_t n, bool wide)
{
    if (wide && n >= 4) {
        store4(to, v);
        return;
    }
    for (int e = 0; e < 4; e++)
        if (e < n) to[e] = to_value<T>(v[e]);
}

#endif
