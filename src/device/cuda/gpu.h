/* CUDA's words for our kernels, in two worlds: nvcc compiles them for GPUs, and g++ for the
 * emulator of tests/emulator, which runs them on the host and finds their faults.
 *
 * Rules for sources, so that both worlds understand them and results depend on no order:
 *
 *   launches       gpu_launch(kernel, grid, block, shared bytes, stream, parameters...); <<<>>>
 *                  stands only here. Blocks are whole warps. Parameters are values and pointers to
 *                  the device's memory.
 *   shared memory  SHARED(type, name, count) and, for what the launch sizes, SHARED_DYN(type, name)
 *   bfloat16       the type bf16, which converts by to_f and to_value only: CUDA's own type takes a
 *                  float without a word, and rounds it; float16 is the type f16 in the same way
 *   vectors        load_pack and store_pack, where fits_pack says so; of four load4 and store4
 *   sums           in one order, which the launch does not decide: no atomic function on floats, no
 *                  "last block"
 *   not used       cooperative groups, launches by kernels, textures, memcpy in kernels
 */
#ifndef KEEL_DEVICE_CUDA_GPU_H
#define KEEL_DEVICE_CUDA_GPU_H
#ifdef __CUDACC__
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>

#define SHARED(type, name, count) __shared__ type name[count]
#define SHARED_DYN(type, name)                                                                     \
    extern __shared__ __align__(16) unsigned char gpu_shared[];                                    \
    type *const name = reinterpret_cast<type *>(gpu_shared)
#define gpu_aligned(at, to) ((void)0)

/* NULL, or why the launch failed. */
template <class... P, class... A>
static const char *gpu_launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared,
                              cudaStream_t stream, A... args)
{
    kernel<<<grid, block, shared, stream>>>(static_cast<P>(args)...);
    const cudaError_t e = cudaGetLastError();
    return e == cudaSuccess ? nullptr : cudaGetErrorString(e);
}

static inline int64_t gpu_blocks_most(int64_t most)
{
    return most;
}
#else
#include <gpu.h> /* tests/emulator/gpu.h */
#endif

/* Before a loop of a number of turns that is known: its arrays then live in registers. UNROLL_1:
 * before one that stays a loop. */
#ifdef __CUDACC__
#define UNROLL   _Pragma("unroll")
#define UNROLL_1 _Pragma("unroll 1")
#else
#define UNROLL
#define UNROLL_1
#endif

/* Blocks of a launch with work for `n`, of which each takes several in turn if there are more than
 * `most`. On the emulator there may be fewer, so that loops over them are tried by small cases. */
static inline unsigned gpu_blocks(int64_t n, int64_t most)
{
    most = gpu_blocks_most(most);
    return (unsigned)(n < most ? n : most);
}

static const int GPU_WARP = 32;
#define GPU_ALL 0xffffffffu /* lanes of a warp */

/* The upper half of a float, as tensor/bfloat16.h. */
struct bf16 {
    uint16_t bits;
};

/* IEEE 754's binary16, as tensor/float16.h. */
struct f16 {
    uint16_t bits;
};

static __host__ __device__ __forceinline__ float to_f(float x)
{
    return x;
}

static __device__ __forceinline__ float to_f(bf16 x)
{
    return __uint_as_float((unsigned)x.bits << 16);
}

static __device__ __forceinline__ float to_f(f16 x)
{
    return __half2float(__ushort_as_half(x.bits));
}

static __device__ __forceinline__ float to_f(uint8_t x)
{
    return (float)x;
}

static __device__ __forceinline__ float to_f(int32_t x)
{
    return (float)x;
}

static __device__ __forceinline__ float to_f(int64_t x)
{
    return (float)x;
}

/* float, bf16 or f16 of a float, rounded to nearest even. */
template <class T> static __device__ __forceinline__ T to_value(float x);
template <> __device__ __forceinline__ float to_value<float>(float x)
{
    return x;
}
template <> __device__ __forceinline__ bf16 to_value<bf16>(float x)
{
#ifdef __CUDACC__
    uint16_t narrow;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(narrow) : "f"(x));
    return bf16{ narrow };
#else
    const unsigned bits = __float_as_uint(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return bf16{ (uint16_t)(bits >> 16 | 0x40) };
    return bf16{ (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16) };
#endif
}
template <> __device__ __forceinline__ f16 to_value<f16>(float x)
{
    return f16{ __half_as_ushort(__float2half_rn(x)) };
}

/* A product that is rounded before anything is added to it: never contracted to a multiply-add. */
static __device__ __forceinline__ float times(float a, float b)
{
#ifdef __CUDACC__
    return __fmul_rn(a, b);
#else
    return a * b;
#endif
}
static __device__ __forceinline__ double times(double a, double b)
{
#ifdef __CUDACC__
    return __dmul_rn(a, b);
#else
    return a * b;
#endif
}

/* To some 2^-21 of the result, in a third of the instructions: for what is rounded to a narrow type
 * next. */
static __device__ __forceinline__ float short_exp(float x)
{
#ifdef __CUDACC__
    return __expf(x);
#else
    return expf(x);
#endif
}
static __device__ __forceinline__ float short_inverse(float x)
{
#ifdef __CUDACC__
    return __fdividef(1, x);
#else
    return 1 / x;
#endif
}

/* Neighbours, of at most 16 bytes, as they lie in memory. Who needs those of several places loads
 * all of them before the first is converted: a thread waits where a value is used. */
template <class T, int N> struct alignas(N * sizeof(T)) pack {
    T v[N];
};

template <int N, class T> static __device__ __forceinline__ pack<T, N> load_pack(const T *from)
{
    gpu_aligned(from, sizeof(pack<T, N>));
    return *reinterpret_cast<const pack<T, N> *>(from);
}

template <int N, class T>
static __device__ __forceinline__ void unpack(float v[N], const pack<T, N> &x)
{
    for (int e = 0; e < N; e++) v[e] = to_f(x.v[e]);
}

#ifdef __CUDACC__
/* Two at a time: one instruction for each, and not three. */
template <int N> static __device__ __forceinline__ void unpack(float v[N], const pack<bf16, N> &x)
{
    unsigned both[N / 2];
    memcpy(both, &x, sizeof x);
    UNROLL
    for (int e = 0; e < N; e += 2) {
        v[e] = __uint_as_float(both[e / 2] << 16);
        v[e + 1] = __uint_as_float(both[e / 2] & 0xffff0000u);
    }
}
#endif

template <int N, class T> static __device__ __forceinline__ void store_pack(T *to, const float *v)
{
    pack<T, N> x;
    gpu_aligned(to, sizeof x);
    for (int e = 0; e < N; e++) x.v[e] = to_value<T>(v[e]);
    *reinterpret_cast<pack<T, N> *>(to) = x;
}

/* Whether packs of N may be loaded and stored from here on, at steps of N. */
template <int N, class T> static inline bool fits_pack(const T *at)
{
    return reinterpret_cast<uintptr_t>(at) % sizeof(pack<T, N>) == 0;
}

/* Four neighbours at once. */
template <class T> using four = pack<T, 4>;

template <class T> static __device__ __forceinline__ void load4(float v[4], const T *from)
{
    unpack<4>(v, load_pack<4>(from));
}

template <class T> static __device__ __forceinline__ void store4(T *to, const float v[4])
{
    store_pack<4>(to, v);
}

/* Whether load4 and store4 may be used from here on. */
template <class T> static inline bool wide4(const T *at)
{
    return fits_pack<4>(at);
}

struct gpu_plus {
    template <class T> __device__ __forceinline__ T operator()(T a, T b) const
    {
        return a + b;
    }
};

struct gpu_or {
    __device__ __forceinline__ unsigned operator()(unsigned a, unsigned b) const
    {
        return a | b;
    }
};

struct gpu_greater { /* a NaN wins */
    template <class T> __device__ __forceinline__ T operator()(T a, T b) const
    {
        return a > b || a != a ? a : b;
    }
};

/* Folds the values of all lanes, in one order: every lane has the result. */
template <class F, class T> static __device__ __forceinline__ T warp_fold(T x, F f)
{
    for (int by = GPU_WARP / 2; by > 0; by /= 2) x = f(x, __shfl_xor_sync(GPU_ALL, x, by));
    return x;
}

/* A bit for each lane of the warp: whether it has brought a `true`. */
static __device__ __forceinline__ unsigned warp_votes(bool mine)
{
#ifdef __CUDACC__
    return __ballot_sync(GPU_ALL, mine);
#else
    return warp_fold((unsigned)mine << (threadIdx.x % GPU_WARP), gpu_or());
#endif
}

/* The same of all threads of a block, of one dim and at most 1024 threads. `room` is shared memory
 * for 33 values, which nobody else uses between two barriers before and after. */
template <class F, class T> static __device__ __forceinline__ T block_fold(T x, T *room, F f)
{
    const int warps = (int)blockDim.x / GPU_WARP, lane = (int)threadIdx.x % GPU_WARP;
    x = warp_fold(x, f);
    if (warps == 1) return x;
    if (lane == 0) room[threadIdx.x / GPU_WARP] = x;
    __syncthreads();
    T all = room[0]; /* each thread in the same order */
    for (int w = 1; w < warps; w++) all = f(all, room[w]);
    __syncthreads(); /* room may be used again */
    return all;
}

#endif
