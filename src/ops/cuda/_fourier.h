/* Fourier's transforms of many lines of n complex numbers, in double. With m = n / L, place (j, k)
 * of step L is number k of the transform of x[j], x[j + m], x[j + 2 m] ..., which are L numbers; so
 * step 1 is x itself, and step n its transform. A step of p times as many adds up p of the last. A
 * thread has a place. */
#ifndef KEEL_OPS_CUDA_FOURIER_H
#define KEEL_OPS_CUDA_FOURIER_H
#include "ops/cuda/_kernel.h"
#include <math.h>

/* Numbers that are transformed at a time, so that scratch stays small. The emulator takes several
 * turns, too. */
#ifdef __CUDACC__
static const int64_t FOURIER_SOME = 1 << 21;
#else
static const int64_t FOURIER_SOME = 150;
#endif

struct complex_number {
    double re, im;
};

/* turn[k] = e^(-2 pi i k / n) */
static __global__ void __launch_bounds__(CUDA_THREADS, 1)
    fourier_turns_kernel(complex_number *turn, int64_t n)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS;
    for (int64_t k = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; k < n; k += step) {
        const double angle = 2 * 3.14159265358979323846 * (double)k / (double)n;
        turn[k] = { cos(angle), -sin(angle) };
    }
}

/* done: the length L that `from` has been transformed to. */
static __global__ void __launch_bounds__(CUDA_THREADS, 1)
    fourier_step_kernel(complex_number *to, const complex_number *from, const complex_number *turn,
                        int64_t lines, int64_t n, int64_t done, int64_t p)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_THREADS, length = done * p, m = n / length;
    for (int64_t t = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x; t < lines * n; t += step) {
        int64_t line = t;
        int64_t j = take(&line, n), k, place;
        k = take(&j, length);
        place = k;
        place = take(&place, done);
        const complex_number *x = from + line * n + j * done + place;
        complex_number sum = { 0, 0 };
        int64_t at = 0; /* r k modulo the length */
        for (int64_t r = 0; r < p; r++) {
            const complex_number v = x[r * m * done], w = turn[at * m];
            sum.re += v.re * w.re - v.im * w.im;
            sum.im += v.re * w.im + v.im * w.re;
            at += k;
            if (at >= length) at -= length;
        }
        to[t] = sum;
    }
}

/* Complex numbers of scratch: the turns, and the lines twice. */
static inline int64_t fourier_scratch(int64_t n, int64_t lines)
{
    return (n + 2 * n * lines) * (int64_t)sizeof(complex_number);
}

struct fourier_room {
    complex_number *turn, *from, *other;
};

static inline fourier_room fourier_begin(const keel_call *c, void *scratch, int64_t n,
                                         int64_t lines)
{
    complex_number *turn = static_cast<complex_number *>(scratch);
    cuda_launch(c, fourier_turns_kernel, cuda_blocks(n), CUDA_THREADS, 0, turn, n);
    return { turn, turn + n, turn + n + n * lines };
}

static inline int64_t fourier_factor(int64_t n)
{
    static const int64_t few[] = { 8, 4, 2, 3, 5, 7 };
    for (int64_t p : few)
        if (n % p == 0) return p;
    for (int64_t p = 11; p * p <= n; p += 2)
        if (n % p == 0) return p;
    return n;
}

/* Transforms what r.from holds. Returns where it is then. */
static inline complex_number *fourier_transform(const keel_call *c, const fourier_room &r,
                                                int64_t n, int64_t lines)
{
    complex_number *from = r.from, *to = r.other;
    for (int64_t done = 1; done < n;) {
        const int64_t p = fourier_factor(n / done);
        complex_number *const now = from;
        cuda_launch(c, fourier_step_kernel, cuda_blocks(n * lines), CUDA_THREADS, 0, to, now,
                    r.turn, lines, n, done, p);
        done *= p;
        from = to;
        to = now;
    }
    return from;
}

#endif
