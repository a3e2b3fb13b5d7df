/* Element by element: out = f(in[0], in[1], ...), or +=. */
#ifndef KEEL_OPS_CUDA_EACH_H
#define KEEL_OPS_CUDA_EACH_H
#include "ops/cuda/_packs.h"

/* f is a struct of numbers with `float operator()(const float *x) const`, x being one element of
 * each input. */
template <int N, class T, class F> struct each_args {
    T *out;
    const T *in[N];
    int64_t count;
    bool adds, wide;
    F f;
};

template <int N, class T, class F>
static __device__ __forceinline__ float each_one(const each_args<N, T, F> &a, int64_t i)
{
    float x[N];
    for (int k = 0; k < N; k++) x[k] = to_f(a.in[k][i]);
    const float y = a.f(x);
    return a.adds ? to_f(a.out[i]) + y : y;
}

template <int N, class T, class F>
static __global__ void __launch_bounds__(CUDA_THREADS, 1) each_kernel(const each_args<N, T, F> a)
{
    const int PACK = EACH<T>;
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    const int64_t packs = a.wide ? a.count / PACK : 0;
    const int64_t first = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x;
    for (int64_t i = first; i < packs; i += step) {
        pack<T, PACK> x[N], old = {};
        float y[PACK];
        UNROLL
        for (int k = 0; k < N; k++) x[k] = load_pack<PACK>(a.in[k] + PACK * i);
        if (a.adds) old = load_pack<PACK>(a.out + PACK * i);
        float in[N][PACK], was[PACK];
        UNROLL
        for (int k = 0; k < N; k++) unpack<PACK>(in[k], x[k]);
        unpack<PACK>(was, old);
        UNROLL
        for (int e = 0; e < PACK; e++) {
            float one[N];
            UNROLL
            for (int k = 0; k < N; k++) one[k] = in[k][e];
            y[e] = a.adds ? was[e] + a.f(one) : a.f(one);
        }
        store_pack<PACK>(a.out + PACK * i, y);
    }
    for (int64_t i = PACK * packs + first; i < a.count; i += step)
        a.out[i] = to_value<T>(each_one(a, i));
}

/* The result may be written over an input. */
template <int N, class T, class F>
static void each(const keel_call *c, T *out, bool adds, int64_t count, const T *const (&in)[N], F f)
{
    const int PACK = EACH<T>;
    each_args<N, T, F> a = { out, {}, count, adds, fits_pack<PACK>(out), f };
    for (int k = 0; k < N; k++) {
        a.in[k] = in[k];
        a.wide = a.wide && fits_pack<PACK>(in[k]);
    }
    cuda_launch(c, each_kernel<N, T, F>, cuda_blocks(a.wide ? (count + PACK - 1) / PACK : count),
                CUDA_THREADS, 0, a);
}

/* An op y = value(x), dx = dy slope(...). M, made from the op's arguments, has
 *
 *     float value(float x) const;  float slope(float at) const;
 *
 * where `at` is y if M::from_out, else x. */
template <class M> struct each_value {
    M m;
    __device__ __forceinline__ float operator()(const float *x) const
    {
        return m.value(x[0]);
    }
};

template <class M> struct each_slope {
    M m;
    __device__ __forceinline__ float operator()(const float *x) const
    {
        return x[1] * m.slope(x[0]);
    }
};

template <class M, class T> static void each_forward(const keel_call *c)
{
    each<1, T>(c, cuda_out<T>(c), false, cuda_count(c), { cuda_in<T>(c, 0) },
               each_value<M>{ M::of(c) });
}

template <class M, class T> static void each_backward(const keel_call *c)
{
    const T *at = M::from_out ? cuda_out<T>(c) : cuda_in<T>(c, 0);
    if (!c->in_grad[0]) return;
    each<2, T>(c, cuda_in_grad<T>(c, 0), c->in_adds[0], cuda_count(c), { at, cuda_out_grad<T>(c) },
               each_slope<M>{ M::of(c) });
}

/* The members of such an op's kernel; SHORT is M for narrow values. */
#define EACH_KERNELS(stem, M, SHORT)                                                               \
    CUDA_KERNEL(stem) = { .op = &keel_op_##stem,                                                   \
                          .name = "cuda",                                                          \
                          .prepare = cuda_always,                                                  \
                          .run = { each_forward<M, float>, each_backward<M, float> },              \
                          .narrow = { each_forward<SHORT, bf16>, each_backward<SHORT, bf16> },     \
                          .half = { each_forward<SHORT, f16>, each_backward<SHORT, f16> } }
#define EACH_KERNEL(stem, M) EACH_KERNELS(stem, M, M)

/* The whole file of an op without arguments: y as an expression in x, and its slope in x, or in y.
 */
#define EACH_OF(stem, reads_out, at, value_of, slope_of)                                           \
    namespace                                                                                      \
    {                                                                                              \
    struct stem##_of {                                                                             \
        static const bool from_out = reads_out;                                                    \
        static stem##_of of(const keel_call *)                                                     \
        {                                                                                          \
            return {};                                                                             \
        }                                                                                          \
        __device__ __forceinline__ float value(float x) const                                      \
        {                                                                                          \
            return value_of;                                                                       \
        }                                                                                          \
        __device__ __forceinline__ float slope([[maybe_unused]] float at) const                    \
        {                                                                                          \
            return slope_of;                                                                       \
        }                                                                                          \
    };                                                                                             \
    }                                                                                              \
    EACH_KERNEL(stem, stem##_of)
#define EACH_FROM_IN(stem, value_of, slope_of)  EACH_OF(stem, false, x, value_of, slope_of)
#define EACH_FROM_OUT(stem, value_of, slope_of) EACH_OF(stem, true, y, value_of, slope_of)

#endif
