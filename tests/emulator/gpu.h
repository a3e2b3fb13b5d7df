/* What CUDA's headers give to kernels, for the emulator: words, indices, barriers, shuffles, shared
 * memory, atomic functions. Only what the rules of device/cuda/gpu.h allow is here, so that a
 * kernel that breaks them does not compile. */
#ifndef EMULATOR_GPU_H
#define EMULATOR_GPU_H
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <tuple>
#include <type_traits>
extern "C" {
#include "tensor/float16.h"
}

#define __global__
#define __device__
#define __host__
#define __launch_bounds__(...)
#define __forceinline__ inline __attribute__((always_inline))

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_)
    {
    }
};

/* ---- where a thread is: at the upper end of its stack, so that the stack pointer leads there ---
 */

enum { EMU_STACK = 1 << 16, EMU_HEAD = 1 << 10 };

struct emu_place {
    dim3 thread, block, size, grid;
};

static __forceinline__ const emu_place *emu_self()
{
    uintptr_t sp;
    asm("movq %%rsp, %0" : "=r"(sp));
    return reinterpret_cast<const emu_place *>((sp | (EMU_STACK - 1)) + 1 - EMU_HEAD);
}
#define threadIdx (emu_self()->thread)
#define blockIdx  (emu_self()->block)
#define blockDim  (emu_self()->size)
#define gridDim   (emu_self()->grid)

int64_t gpu_blocks_most(int64_t most);

/* ---- meetings ---------------------------------------------------------------------------------
 */

void emu_barrier(const char *file, int line);
void emu_warp_barrier(const char *file, int line, unsigned mask);
/* The bits that lane `from` has brought. */
uint64_t emu_shuffle(const char *file, int line, unsigned mask, uint64_t bits, unsigned from);
unsigned emu_lane();

#define __syncthreads() emu_barrier(__FILE__, __LINE__)
#define EMU_MASK(...)   (emu_mask(__VA_ARGS__))
#define __syncwarp(...) emu_warp_barrier(__FILE__, __LINE__, EMU_MASK(__VA_ARGS__))
static inline unsigned emu_mask(unsigned mask = 0xffffffffu)
{
    return mask;
}

template <class T>
static inline T emu_shuffled(const char *file, int line, unsigned mask, T value, unsigned from)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a shuffle moves 4 or 8 bytes");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    bits = emu_shuffle(file, line, mask, bits, from);
    memcpy(&value, &bits, sizeof value);
    return value;
}
#define __shfl_sync(mask, value, from)                                                             \
    emu_shuffled(__FILE__, __LINE__, mask, value, (unsigned)(from) % 32)
#define __shfl_xor_sync(mask, value, by)                                                           \
    emu_shuffled(__FILE__, __LINE__, mask, value, emu_lane() ^ (unsigned)(by))
#define __shfl_down_sync(mask, value, by)                                                          \
    emu_shuffled(__FILE__, __LINE__, mask, value,                                                  \
                 emu_lane() + (unsigned)(by) < 32 ? emu_lane() + (unsigned)(by) : emu_lane())

/* ---- shared memory: of the block, not initialised, with a gap behind each array ---------------
 */

void *emu_shared(const void *key, const char *name, size_t bytes);
void *emu_shared_dynamic();

#define SHARED(type, name, count)                                                                  \
    static const char name##_key = 0;                                                              \
    type *const name = static_cast<type *>(emu_shared(&name##_key, #name, sizeof(type) * (count)))
#define SHARED_DYN(type, name) type *const name = static_cast<type *>(emu_shared_dynamic())

/* ---- memory -----------------------------------------------------------------------------------
 */

void emu_atomic(void *at, size_t bytes);     /* checks; threads take turns */
void emu_aligned(const void *at, size_t to); /* an access to a vector */
#define gpu_aligned(at, to) emu_aligned(at, to)

/* Not instrumented: the access is checked as an atomic one. */
#define EMU_ATOMIC(name, expression)                                                               \
    template <class T> __attribute__((no_sanitize("thread"))) T name(T *at, T value)               \
    {                                                                                              \
        static_assert(std::is_integral<T>::value, "atomic functions only on integers: the sum of " \
                                                  "real numbers depends on the order");            \
        emu_atomic(at, sizeof *at);                                                                \
        const T old = *at;                                                                         \
        *at = expression;                                                                          \
        return old;                                                                                \
    }
EMU_ATOMIC(atomicAdd, (T)(old + value))
EMU_ATOMIC(atomicOr, (T)(old | value))
EMU_ATOMIC(atomicMax, old > value ? old : value)
EMU_ATOMIC(atomicMin, old < value ? old : value)

/* ---- functions --------------------------------------------------------------------------------
 */

static inline float rsqrtf(float x)
{
    return 1 / sqrtf(x);
}

static inline unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((uint64_t)a * b >> 32);
}

static inline unsigned __float_as_uint(float x)
{
    unsigned bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float __uint_as_float(unsigned bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

struct __half {
    uint16_t bits;
};

static inline __half __ushort_as_half(uint16_t bits)
{
    return { bits };
}

static inline uint16_t __half_as_ushort(__half x)
{
    return x.bits;
}

static inline float __half2float(__half x)
{
    return keel_f16_wide(x.bits);
}

static inline __half __float2half_rn(float x)
{
    return { keel_f16_round(x) };
}

/* ---- launches ---------------------------------------------------------------------------------
 */

typedef struct emu_stream *cudaStream_t;

/* NULL, or why the launch failed. */
const char *emu_launch(void (*body)(const void *), const void *params, size_t bytes, dim3 grid,
                       dim3 block, size_t shared, cudaStream_t stream);

template <class... P> struct emu_bound {
    void (*kernel)(P...);
    std::tuple<P...> args;
};

template <class... P> static void emu_body(const void *at)
{
    const emu_bound<P...> *b = static_cast<const emu_bound<P...> *>(at);
    std::apply(b->kernel, b->args);
}

template <class... P, class... A>
static const char *gpu_launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared,
                              cudaStream_t stream, A... args)
{
    const emu_bound<P...> bound = { kernel, std::tuple<P...>(args...) };
    static_assert(sizeof bound <= 4096, "a kernel has at most 4 KiB of parameters");
    return emu_launch(emu_body<P...>, &bound, sizeof bound, grid, block, shared, stream);
}

#endif
