/* See ops/inverse.c. */
#include "ops/cuda/_matrices.h"

namespace
{
template <int WIDTH, class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    forward_kernel(T *y, const T *x, const matrices s)
{
    typedef matrix_threads<WIDTH> threads;
    SHARED(double, room, 33);
    const int64_t size = s.n * s.n;
    for (int64_t m = threads::first_line(); m < s.count; m += threads::step()) {
        double *lu = s.scratch + m * s.room, *order = lu + size, *inverse = order + s.n;
        matrix_lu<threads>(lu, order, x + m * size, s.n, room);
        lu_inverse<threads>(lu, order, s.n, inverse);
        for (int64_t i = threads::number(); i < size; i += WIDTH)
            y[m * size + i] = to_value<T>((float)inverse[i]);
    }
}

/* dA = -Y^T (dY Y^T) */
template <int WIDTH, class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    backward_kernel(T *dx, const T *all_y, const T *all_dy, const matrices s, bool adds)
{
    typedef matrix_threads<WIDTH> threads;
    const int64_t size = s.n * s.n;
    for (int64_t m = threads::first_line(); m < s.count; m += threads::step()) {
        double *part = s.scratch + m * s.room;
        const T *y = all_y + m * size, *dy = all_dy + m * size;
        for (int64_t t = threads::number(); t < size; t += WIDTH) {
            int64_t i = t;
            const int64_t j = take(&i, s.n);
            double sum = 0;
            for (int64_t k = 0; k < s.n; k++)
                sum += (double)to_f(dy[i * s.n + k]) * (double)to_f(y[j * s.n + k]);
            part[t] = sum;
        }
        threads::meet();
        for (int64_t t = threads::number(); t < size; t += WIDTH) {
            int64_t i = t;
            const int64_t j = take(&i, s.n);
            double g = 0;
            for (int64_t k = 0; k < s.n; k++) g -= to_f(y[k * s.n + i]) * part[k * s.n + j];
            T *to = dx + m * size + t;
            *to = to_value<T>((float)(adds ? to_f(*to) + g : g));
        }
    }
}

template <class T> void forward(const keel_call *c)
{
    const matrices s = matrices_of(c->node, c->rows, true, c->scratch);
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
    const bool back = p->pass == KEEL_BACKWARD;
    return cuda_prepare(p, matrices_scratch(matrices_of(p->node, p->rows, !back, nullptr)));
}
} // namespace

CUDA_KERNEL(inverse) = { .op = &keel_op_inverse,
                         .name = "cuda",
                         .prepare = prepare,
                         .run = { forward<float>, backward<float> },
                         .narrow = { forward<bf16>, backward<bf16> },
                         .half = { forward<f16>, backward<f16> } };
