/* See ops/determinant.c. */
#include "ops/cuda/_matrices.h"

namespace
{
/* Of the matrix at x; leaves its decomposition. */
template <class THREADS, class T>
__device__ __forceinline__ double determinant(const T *x, int64_t n, double *lu, double *order,
                                              double *room)
{
    matrix_copy<THREADS>(lu, x, n);
    double product = lu_of<THREADS>(lu, n, order, room);
    for (int64_t i = 0; i < n; i++) product *= lu[i * n + i];
    return product;
}

template <int WIDTH, class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    forward_kernel(T *y, const T *x, const matrices s)
{
    typedef matrix_threads<WIDTH> threads;
    SHARED(double, room, 33);
    for (int64_t m = threads::first_line(); m < s.count; m += threads::step()) {
        double *lu = s.scratch + m * s.room;
        const double d = determinant<threads>(x + m * s.n * s.n, s.n, lu, lu + s.n * s.n, room);
        if (threads::number() == 0) y[m] = to_value<T>((float)d);
    }
}

template <int WIDTH, class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    backward_kernel(T *dx, const T *x, const T *dy, const matrices s, bool adds)
{
    typedef matrix_threads<WIDTH> threads;
    SHARED(double, room, 33);
    for (int64_t m = threads::first_line(); m < s.count; m += threads::step()) {
        double *lu = s.scratch + m * s.room, *order = lu + s.n * s.n, *inverse = order + s.n;
        const double d =
            to_f(dy[m]) * determinant<threads>(x + m * s.n * s.n, s.n, lu, order, room);
        lu_inverse<threads>(lu, order, s.n, inverse);
        matrix_put_turned<threads>(dx + m * s.n * s.n, inverse, d, s.n, adds);
    }
}

matrices all_of(const keel_node *n, int64_t rows, bool back, void *scratch)
{
    const int64_t size = n->in[0].shape.dim[n->in[0].shape.rank - 1];
    return matrices_of(n, rows, back ? size * size : 0, scratch);
}

template <class T> void forward(const keel_call *c)
{
    const matrices s = all_of(c->node, c->rows, false, c->scratch);
    matrices_with_width(s, [&](auto width) {
        cuda_launch(c, forward_kernel<width(), T>, matrix_threads<width()>::blocks(s.count),
                    CUDA_THREADS, 0, cuda_out<T>(c), cuda_in<T>(c, 0), s);
    });
}

template <class T> void backward(const keel_call *c)
{
    const matrices s = all_of(c->node, c->rows, true, c->scratch);
    if (!c->in_grad[0]) return;
    matrices_with_width(s, [&](auto width) {
        cuda_launch(c, backward_kernel<width(), T>, matrix_threads<width()>::blocks(s.count),
                    CUDA_THREADS, 0, cuda_in_grad<T>(c, 0), cuda_in<T>(c, 0), cuda_out_grad<T>(c),
                    s, c->in_adds[0]);
    });
}

keel_status prepare(keel_prepare *p)
{
    const bool back = p->pass == KEEL_BACKWARD;
    return cuda_prepare(p, matrices_scratch(all_of(p->node, p->rows, back, nullptr)));
}
} // namespace

CUDA_KERNEL(determinant) = { .op = &keel_op_determinant,
                             .name = "cuda",
                             .prepare = prepare,
                             .run = { forward<float>, backward<float> },
                             .narrow = { forward<bf16>, backward<bf16> },
                             .half = { forward<f16>, backward<f16> } };
