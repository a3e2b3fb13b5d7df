/* See ops/solve.c. */
#include "ops/cuda/_matrices.h"

namespace
{
template <int WIDTH, class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    forward_kernel(T *y, const T *a, const T *b, const matrices s)
{
    typedef matrix_threads<WIDTH> threads;
    SHARED(double, room, 33);
    const int64_t n = s.n, columns = s.columns;
    for (int64_t m = threads::first_line(); m < s.count; m += threads::step()) {
        double *lu = s.scratch + m * s.room, *order = lu + n * n, *x = order + n;
        const T *from = b + m * n * columns;
        matrix_lu<threads>(lu, order, a + m * n * n, n, room);
        for (int64_t j = threads::number(); j < columns; j += WIDTH) {
            lu_solve(
                lu, order, n, [=](int64_t i) { return (double)to_f(from[i * columns + j]); }, x + j,
                columns);
            for (int64_t i = 0; i < n; i++)
                y[(m * n + i) * columns + j] = to_value<T>((float)x[i * columns + j]);
        }
    }
}

/* dB of A^T dB = dX, in scratch; dA = -dB X^T. */
template <int WIDTH, class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    backward_kernel(T *of_a, T *of_b, const T *all_a, const T *all_x, const T *all_dx,
                    const matrices s, bool a_adds, bool b_adds)
{
    typedef matrix_threads<WIDTH> threads;
    SHARED(double, room, 33);
    const int64_t n = s.n, columns = s.columns;
    for (int64_t m = threads::first_line(); m < s.count; m += threads::step()) {
        double *lu = s.scratch + m * s.room, *order = lu + n * n, *db = order + n;
        const T *a = all_a + m * n * n, *x = all_x + m * n * columns;
        const T *from = all_dx + m * n * columns;
        for (int64_t t = threads::number(); t < n * n; t += WIDTH) {
            int64_t i = t;
            const int64_t j = take(&i, n);
            lu[t] = to_f(a[j * n + i]);
        }
        threads::meet();
        lu_of<threads>(lu, n, order, room);
        for (int64_t j = threads::number(); j < columns; j += WIDTH) {
            lu_solve(
                lu, order, n, [=](int64_t i) { return (double)to_f(from[i * columns + j]); },
                db + j, columns);
            for (int64_t i = 0; of_b && i < n; i++) {
                T *to = of_b + (m * n + i) * columns + j;
                const double g = db[i * columns + j];
                *to = to_value<T>((float)(b_adds ? to_f(*to) + g : g));
            }
        }
        threads::meet();
        for (int64_t t = threads::number(); of_a && t < n * n; t += WIDTH) {
            int64_t i = t;
            const int64_t k = take(&i, n);
            double g = 0;
            for (int64_t j = 0; j < columns; j++)
                g -= db[i * columns + j] * to_f(x[k * columns + j]);
            T *to = of_a + m * n * n + t;
            *to = to_value<T>((float)(a_adds ? to_f(*to) + g : g));
        }
    }
}

matrices all_of(const keel_node *n, int64_t rows, void *scratch)
{
    matrices s = matrices_of(n, rows, false, scratch);
    s.room += s.n * s.columns;
    return s;
}

template <class T> void forward(const keel_call *c)
{
    const matrices s = all_of(c->node, c->rows, c->scratch);
    matrix_launch(
        c, s, [](auto width) { return forward_kernel<width(), T>; }, cuda_out<T>(c),
        cuda_in<T>(c, 0), cuda_in<T>(c, 1), s);
}

template <class T> void backward(const keel_call *c)
{
    const matrices s = all_of(c->node, c->rows, c->scratch);
    T *of_a = cuda_in_grad<T>(c, 0), *of_b = cuda_in_grad<T>(c, 1);
    if (!of_a && !of_b) return;
    matrix_launch(
        c, s, [](auto width) { return backward_kernel<width(), T>; }, of_a, of_b, cuda_in<T>(c, 0),
        cuda_out<T>(c), cuda_out_grad<T>(c), s, c->in_adds[0], c->in_adds[1]);
}

keel_status prepare(keel_prepare *p)
{
    return cuda_prepare(p, matrices_scratch(all_of(p->node, p->rows, nullptr)));
}
} // namespace

CUDA_KERNEL(solve) = { .op = &keel_op_solve,
                       .name = "cuda",
                       .prepare = prepare,
                       .run = { forward<float>, backward<float> },
                       .narrow = { forward<bf16>, backward<bf16> },
                       .half = { forward<f16>, backward<f16> } };
