/* See ops/cholesky.c. */
#include "ops/cuda/_matrices.h"

namespace
{
template <int WIDTH, class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    forward_kernel(T *y, const T *all_x, const matrices s)
{
    typedef matrix_threads<WIDTH> threads;
    const int64_t n = s.n;
    for (int64_t m = threads::first_line(); m < s.count; m += threads::step()) {
        const T *x = all_x + m * n * n;
        double *l = s.scratch + m * s.room;
        for (int64_t j = 0; j < n; j++) {
            for (int64_t i = j + threads::number(); i < n; i += WIDTH) {
                double sum = ((double)to_f(x[i * n + j]) + (double)to_f(x[j * n + i])) / 2;
                for (int64_t k = 0; k < j; k++) sum -= l[i * n + k] * l[j * n + k];
                l[i * n + j] = i == j ? sqrt(sum) : sum;
            }
            threads::meet();
            for (int64_t i = j + 1 + threads::number(); i < n; i += WIDTH)
                l[i * n + j] /= l[j * n + j];
            threads::meet();
        }
        for (int64_t t = threads::number(); t < n * n; t += WIDTH) {
            int64_t i = t;
            const int64_t j = take(&i, n);
            y[m * n * n + t] = to_value<T>(j > i ? 0 : (float)l[t]);
        }
    }
}

/* x = L^-T b for a column of numbers `stride` apart, in place. */
template <class T>
__device__ __forceinline__ void solve(const T *l, int64_t n, double *b, int64_t stride)
{
    for (int64_t i = n - 1; i >= 0; i--) {
        double x = b[i * stride];
        for (int64_t k = i + 1; k < n; k++) x -= to_f(l[k * n + i]) * b[k * stride];
        b[i * stride] = x / to_f(l[i * n + i]);
    }
}

template <int WIDTH, class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    backward_kernel(T *dx, const T *all_l, const T *all_dl, const matrices s, bool adds)
{
    typedef matrix_threads<WIDTH> threads;
    const int64_t n = s.n;
    for (int64_t m = threads::first_line(); m < s.count; m += threads::step()) {
        const T *l = all_l + m * n * n, *dl = all_dl + m * n * n;
        double *p = s.scratch + m * s.room;
        for (int64_t t = threads::number(); t < n * n; t += WIDTH) {
            int64_t i = t;
            const int64_t j = take(&i, n);
            double sum = 0;
            for (int64_t k = i; k < n && j <= i; k++)
                sum += (double)to_f(l[k * n + i]) * (double)to_f(dl[k * n + j]);
            p[t] = i == j ? sum / 2 : sum;
        }
        threads::meet();
        for (int64_t j = threads::number(); j < n; j += WIDTH) solve(l, n, p + j, n);
        threads::meet();
        for (int64_t i = threads::number(); i < n; i += WIDTH) solve(l, n, p + i * n, 1);
        threads::meet();
        for (int64_t t = threads::number(); t < n * n; t += WIDTH) {
            int64_t i = t;
            const int64_t j = take(&i, n);
            const double g = (p[t] + p[j * n + i]) / 2;
            T *to = dx + m * n * n + t;
            *to = to_value<T>((float)(adds ? to_f(*to) + g : g));
        }
    }
}

template <class T> void forward(const keel_call *c)
{
    const matrices s = matrices_of(c->node, c->rows, false, c->scratch);
    matrix_launch(
        c, s, [](auto width) { return forward_kernel<width(), T>; }, cuda_out<T>(c),
        cuda_in<T>(c, 0), s);
}

template <class T> void backward(const keel_call *c)
{
    const matrices s = matrices_of(c->node, c->rows, false, c->scratch);
    if (!c->in_grad[0]) return;
    matrix_launch(
        c, s, [](auto width) { return backward_kernel<width(), T>; }, cuda_in_grad<T>(c, 0),
        cuda_out<T>(c), cuda_out_grad<T>(c), s, c->in_adds[0]);
}

keel_status prepare(keel_prepare *p)
{
    return cuda_prepare(p, matrices_scratch(matrices_of(p->node, p->rows, false, nullptr)));
}
} // namespace

CUDA_KERNEL(cholesky) = { .op = &keel_op_cholesky,
                          .name = "cuda",
                          .prepare = prepare,
                          .run = { forward<float>, backward<float> },
                          .narrow = { forward<bf16>, backward<bf16> },
                          .half = { forward<f16>, backward<f16> } };
