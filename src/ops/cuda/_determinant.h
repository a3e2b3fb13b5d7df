/* determinant and log_determinant: see ops/determinant.c and ops/log_determinant.c. */
#ifndef KEEL_OPS_CUDA_DETERMINANT_H
#define KEEL_OPS_CUDA_DETERMINANT_H
#include "ops/cuda/_matrices.h"

/* Of a decomposition and its sign, which becomes that of the determinant, or NaN; 0 for one of 0.
 */
static __device__ __forceinline__ double lu_log_size(const double *lu, int64_t n, double *sign)
{
    double log_size = 0;
    for (int64_t i = 0; i < n; i++) {
        const double d = lu[i * n + i];
        *sign = d > 0 ? *sign : d < 0 ? -*sign : d * 0;
        log_size += log(fabs(d));
    }
    return log_size;
}

static __device__ __forceinline__ double lu_determinant(const double *lu, int64_t n, double sign)
{
    for (int64_t i = 0; i < n; i++) sign *= lu[i * n + i];
    return sign;
}

template <bool LOG, int WIDTH, class T>
static __global__ void __launch_bounds__(CUDA_THREADS, 1)
    determinant_kernel(T *y, const T *x, const matrices s)
{
    typedef matrix_threads<WIDTH> threads;
    SHARED(double, room, 33);
    for (int64_t m = threads::first_line(); m < s.count; m += threads::step()) {
        double *lu = s.scratch + m * s.room;
        double sign = matrix_lu<threads>(lu, lu + s.n * s.n, x + m * s.n * s.n, s.n, room);
        const double of = LOG ? lu_log_size(lu, s.n, &sign) : lu_determinant(lu, s.n, sign);
        if (threads::number() != 0) continue;
        if (LOG) y[2 * m] = to_value<T>((float)sign);
        y[LOG ? 2 * m + 1 : m] = to_value<T>((float)of);
    }
}

template <bool LOG, int WIDTH, class T>
static __global__ void __launch_bounds__(CUDA_THREADS, 1)
    determinant_back_kernel(T *dx, const T *x, const T *dy, const matrices s, bool adds)
{
    typedef matrix_threads<WIDTH> threads;
    SHARED(double, room, 33);
    for (int64_t m = threads::first_line(); m < s.count; m += threads::step()) {
        double *lu = s.scratch + m * s.room, *order = lu + s.n * s.n, *inverse = order + s.n;
        const double sign = matrix_lu<threads>(lu, order, x + m * s.n * s.n, s.n, room);
        double d = to_f(dy[LOG ? 2 * m + 1 : m]);
        if (!LOG) d *= lu_determinant(lu, s.n, sign);
        lu_inverse<threads>(lu, order, s.n, inverse);
        matrix_put_turned<threads>(dx + m * s.n * s.n, inverse, d, s.n, adds);
    }
}

template <bool LOG, class T> static void determinant_forward(const keel_call *c)
{
    const matrices s = matrices_of(c->node, c->rows, false, c->scratch);
    matrix_launch(
        c, s, [](auto width) { return determinant_kernel<LOG, width(), T>; }, cuda_out<T>(c),
        cuda_in<T>(c, 0), s);
}

template <bool LOG, class T> static void determinant_backward(const keel_call *c)
{
    const matrices s = matrices_of(c->node, c->rows, true, c->scratch);
    if (!c->in_grad[0]) return;
    matrix_launch(
        c, s, [](auto width) { return determinant_back_kernel<LOG, width(), T>; },
        cuda_in_grad<T>(c, 0), cuda_in<T>(c, 0), cuda_out_grad<T>(c), s, c->in_adds[0]);
}

static inline keel_status determinant_prepare(keel_prepare *p)
{
    const bool back = p->pass == KEEL_BACKWARD;
    return cuda_prepare(p, matrices_scratch(matrices_of(p->node, p->rows, back, nullptr)));
}

#define DETERMINANT_KERNEL(stem, LOG)                                                              \
    CUDA_KERNEL(                                                                                   \
        stem) = { .op = &keel_op_##stem,                                                           \
                  .name = "cuda",                                                                  \
                  .prepare = determinant_prepare,                                                  \
                  .run = { determinant_forward<LOG, float>, determinant_backward<LOG, float> },    \
                  .narrow = { determinant_forward<LOG, bf16>, determinant_backward<LOG, bf16> },   \
                  .half = { determinant_forward<LOG, f16>, determinant_backward<LOG, f16> } }

#endif
