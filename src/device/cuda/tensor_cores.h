/* Products of small matrices by a warp's tensor cores: 16 x 16 numbers of bfloat16 or float16 times
 * 16 x 8 of them, added to 16 x 8 sums in float32 (PTX: mma.m16n8k16 and ldmatrix). The emulator
 * has the same numbers in the same lanes.
 *
 * A matrix lies in registers of all lanes. With g = lane / 4 and c = 2 (lane % 4), a lane has
 *
 *   left    a[0]: row g, columns c and c + 1; a[1]: row g + 8; a[2], a[3]: as these, 8 columns on
 *   right   b[0]: column g, rows c and c + 1; b[1]: 8 rows on
 *   sums    x[0], x[1]: row g, columns c and c + 1; x[2], x[3]: row g + 8
 *
 * so two tiles of sums beside each other are, rounded, one left matrix. In which order a tensor
 * core adds 16 products is not known, but it is the same for every row and column. */
#ifndef KEEL_DEVICE_CUDA_TENSOR_CORES_H
#define KEEL_DEVICE_CUDA_TENSOR_CORES_H
#include "device/cuda/gpu.h"
#include <type_traits>

/* Two numbers as they lie in memory, rounded to nearest even. */
template <class T> static __device__ __forceinline__ unsigned pair_of(float first, float second);
template <> __device__ __forceinline__ unsigned pair_of<bf16>(float first, float second)
{
#ifdef __CUDACC__
    unsigned pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    return pair;
#else
    return to_value<bf16>(first).bits | (unsigned)to_value<bf16>(second).bits << 16;
#endif
}
template <> __device__ __forceinline__ unsigned pair_of<f16>(float first, float second)
{
#ifdef __CUDACC__
    unsigned pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    return pair;
#else
    return to_value<f16>(first).bits | (unsigned)to_value<f16>(second).bits << 16;
#endif
}

template <class T> static __device__ __forceinline__ float first_of(unsigned pair)
{
    return to_f(T{ (uint16_t)pair });
}

template <class T> static __device__ __forceinline__ float second_of(unsigned pair)
{
    return to_f(T{ (uint16_t)(pair >> 16) });
}

#ifdef __CUDACC__
static __device__ __forceinline__ unsigned shared_address(const void *at)
{
    return (unsigned)__cvta_generic_to_shared(at);
}
#else
/* The same of a matrix of 8 x 8, of which lane 8 m + i has the address of row i. */
template <bool TURNED, class T> static inline void load_as_lanes(unsigned (&to)[4], const T *row)
{
    const unsigned g = threadIdx.x % GPU_WARP / 4, c = threadIdx.x % 4 * 2;
    for (unsigned m = 0; m < 4; m++) {
        const T *first = __shfl_sync(GPU_ALL, row, 8 * m + (TURNED ? c : g));
        const T *second = __shfl_sync(GPU_ALL, row, 8 * m + (TURNED ? c + 1 : g));
        gpu_aligned(first, 16);
        to[m] = first[TURNED ? g : c].bits | (unsigned)second[TURNED ? g : c + 1].bits << 16;
    }
}
#endif

/* Four matrices of 8 x 8 from shared memory: lane 8 m + i gives the address of row i of matrix m,
 * of 16 bytes, and to[m] gets row g, columns c and c + 1. */
template <class T>
static __device__ __forceinline__ void load_matrices(unsigned (&to)[4], const T *row)
{
#ifdef __CUDACC__
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_address(row))
                 : "memory");
#else
    load_as_lanes<false>(to, row);
#endif
}

/* The same, where to[m] gets column g, rows c and c + 1. */
template <class T>
static __device__ __forceinline__ void load_transposed(unsigned (&to)[4], const T *row)
{
#ifdef __CUDACC__
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_address(row))
                 : "memory");
#else
    load_as_lanes<true>(to, row);
#endif
}

#ifdef __CUDACC__
#define TENSOR_PRODUCT(type)                                                                       \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 "                    \
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                 \
                 : "+f"(x[0]), "+f"(x[1]), "+f"(x[2]), "+f"(x[3])                                  \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
#endif

/* x += a b. */
template <class T>
static __device__ __forceinline__ void add_product(float (&x)[4], const unsigned (&a)[4],
                                                   unsigned b0, unsigned b1)
{
#ifdef __CUDACC__
    if constexpr (std::is_same<T, bf16>::value)
        TENSOR_PRODUCT("bf16");
    else
        TENSOR_PRODUCT("f16");
#else
    const unsigned g = threadIdx.x % GPU_WARP / 4, c = threadIdx.x % 4 * 2;
    const uint64_t low = a[0] | (uint64_t)a[1] << 32, high = a[2] | (uint64_t)a[3] << 32;
    const uint64_t right = b0 | (uint64_t)b1 << 32;
    float row[2][16], column[2][16];
    for (unsigned k = 0; k < 4; k++) { /* lane 4 r + k has columns 2 k and 2 k + 1 of row r */
        const uint64_t of[2] = { __shfl_sync(GPU_ALL, low, 4 * g + k),
                                 __shfl_sync(GPU_ALL, high, 4 * g + k) };
        const uint64_t in[2] = { __shfl_sync(GPU_ALL, right, 4 * c + k),
                                 __shfl_sync(GPU_ALL, right, 4 * (c + 1) + k) };
        for (unsigned i = 0; i < 2; i++)
            for (unsigned e = 0; e < 2; e++) {
                row[i][8 * e + 2 * k] = first_of<T>((unsigned)(of[e] >> 32 * i));
                row[i][8 * e + 2 * k + 1] = second_of<T>((unsigned)(of[e] >> 32 * i));
                column[i][8 * e + 2 * k] = first_of<T>((unsigned)(in[i] >> 32 * e));
                column[i][8 * e + 2 * k + 1] = second_of<T>((unsigned)(in[i] >> 32 * e));
            }
    }
    for (int i = 0; i < 2; i++)
        for (int e = 0; e < 2; e++)
            for (int k = 0; k < 16; k++) x[2 * i + e] += row[i][k] * column[e][k];
#endif
}

#endif
