/* See ops/pseudo_inverse.c. Backward is a chain of products of small matrices, whose elements the
 * threads of a matrix share. */
#include "ops/cuda/_orthogonal.h"
extern "C" {
#include "ops/pseudo_inverse.h"
}

namespace
{
template <int WIDTH, class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    forward_kernel(T *y, const T *x, double *scratch, const keel_tall t, double least)
{
    typedef matrix_threads<WIDTH> threads;
    SHARED(double, room, 33);
    for (int64_t m = threads::first_line(); m < t.matrices; m += threads::step()) {
        const orthogonal o = orthogonal_at(scratch, t, m);
        double most = 0;
        orthogonal_of<threads>(o, x + m * t.m * t.n, t, room);
        for (int64_t k = 0; k < t.n; k++) most = fmax(most, o.value[k]);
        for (int64_t k = threads::number(); k < t.n; k += WIDTH)
            o.more[k] = o.value[k] > least * most ? 1 / (o.value[k] * o.value[k]) : 0;
        threads::meet();
        /* of the tall matrix it is [n, m] = V S^-1 U^T, where a has U S */
        for (int64_t e = threads::number(); e < t.m * t.n; e += WIDTH) {
            int64_t row = e;
            const int64_t column = take(&row, t.n);
            double sum = 0;
            for (int64_t k = 0; k < t.n; k++)
                if (o.more[k] > 0) sum += o.v[column * t.n + k] * o.a[row * t.n + k] * o.more[k];
            y[m * t.m * t.n + (t.turned ? row * t.rows + column : column * t.rows + row)] =
                to_value<T>((float)sum);
        }
    }
}

/* A matrix and how to walk it: element (i, k) is at i down + k across. */
template <class T> struct view {
    const T *at;
    int64_t rows, columns, down, across;

    __device__ __forceinline__ double operator()(int64_t i, int64_t k) const
    {
        return to_real(at[i * down + k * across]);
    }
    __device__ __forceinline__ view turned() const
    {
        return { at, columns, rows, across, down };
    }
    static __device__ __forceinline__ double to_real(double x)
    {
        return x;
    }
    template <class N> static __device__ __forceinline__ double to_real(N x)
    {
        return to_f(x);
    }
};

template <class T>
__device__ __forceinline__ view<T> whole(const T *at, int64_t rows, int64_t columns)
{
    return { at, rows, columns, columns, 1 };
}

/* to = by a b, [rows of a, columns of b], or += */
template <class THREADS, class A, class B>
__device__ __forceinline__ view<double> product(double *to, const view<A> &a, const view<B> &b,
                                                double by = 1, bool adds = false)
{
    for (int64_t e = THREADS::number(); e < a.rows * b.columns; e += THREADS::WIDTH) {
        int64_t i = e;
        const int64_t j = take(&i, b.columns);
        double sum = 0;
        for (int64_t k = 0; k < a.columns; k++) sum += a(i, k) * b(k, j);
        to[e] = adds ? to[e] + by * sum : by * sum;
    }
    THREADS::meet();
    return whole(static_cast<const double *>(to), a.rows, b.columns);
}

/* sum += v, each thread what it has of both. */
template <class THREADS> __device__ __forceinline__ void add(double *sum, const view<double> &v)
{
    for (int64_t e = THREADS::number(); e < v.rows * v.columns; e += THREADS::WIDTH)
        sum[e] += v.at[e];
}

/* With g the gradient of the inverse Y, that of A is
 * -Y^T g Y^T + (1 - A Y) g^T Y Y^T + Y^T Y g^T (1 - Y A). */
template <int WIDTH, class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    backward_kernel(T *dx, const T *x, const T *y, const T *dy, double *scratch, const keel_tall t,
                    bool adds)
{
    typedef matrix_threads<WIDTH> threads;
    const int64_t count = t.rows * t.columns, square = t.m * t.m;
    for (int64_t m = threads::first_line(); m < t.matrices; m += threads::step()) {
        double *first = scratch + 3 * square * m, *second = first + square, *sum = second + square;
        const view<T> a = whole(x + m * count, t.rows, t.columns);
        const view<T> inverse = whole(y + m * count, t.columns, t.rows), back = inverse.turned();
        const view<T> g = whole(dy + m * count, t.columns, t.rows);
        view<double> v = product<threads>(first, back, g);
        product<threads>(sum, v, back, -1);
        v = product<threads>(first, g.turned(), inverse);
        v = product<threads>(second, v, back);
        add<threads>(sum, v);
        v = product<threads>(first, inverse, v);
        product<threads>(sum, a, v, -1, true);
        v = product<threads>(first, back, inverse);
        v = product<threads>(second, v, g.turned());
        add<threads>(sum, v);
        v = product<threads>(first, v, inverse);
        product<threads>(sum, v, a, -1, true);
        for (int64_t e = threads::number(); e < count; e += WIDTH) {
            T *to = dx + m * count + e;
            *to = to_value<T>((float)(adds ? to_f(*to) + sum[e] : sum[e]));
        }
    }
}

template <class T> void forward(const keel_call *c)
{
    const keel_tall t = keel_tall_of(&c->node->in[0], c->rows);
    orthogonal_launch(
        c, t, [](auto width) { return forward_kernel<width(), T>; }, cuda_out<T>(c),
        cuda_in<T>(c, 0), static_cast<double *>(c->scratch), t,
        cuda_args<keel_pseudo_inverse_args>(c)->least);
}

template <class T> void backward(const keel_call *c)
{
    const keel_tall t = keel_tall_of(&c->node->in[0], c->rows);
    if (!c->in_grad[0]) return;
    orthogonal_launch(
        c, t, [](auto width) { return backward_kernel<width(), T>; }, cuda_in_grad<T>(c, 0),
        cuda_in<T>(c, 0), cuda_out<T>(c), cuda_out_grad<T>(c), static_cast<double *>(c->scratch), t,
        c->in_adds[0]);
}

keel_status prepare(keel_prepare *p)
{
    const keel_tall t = keel_tall_of(&p->node->in[0], p->rows);
    const int64_t each = p->pass == KEEL_FORWARD ? orthogonal_room(t) : 3 * t.m * t.m;
    return cuda_prepare(p, t.matrices * each * (int64_t)sizeof(double));
}
} // namespace

CUDA_KERNEL(pseudo_inverse) = { .op = &keel_op_pseudo_inverse,
                                .name = "cuda",
                                .prepare = prepare,
                                .run = { forward<float>, backward<float> },
                                .narrow = { forward<bf16>, backward<bf16> },
                                .half = { forward<f16>, backward<f16> } };
