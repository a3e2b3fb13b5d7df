/* Many small matrices [n, n], in double, as ops/matrices.h: a warp or, where they are larger, a
 * block has one, and works on it in scratch, column by column. */
#ifndef KEEL_OPS_CUDA_MATRICES_H
#define KEEL_OPS_CUDA_MATRICES_H
#include "ops/cuda/_lines.h"
#include <math.h>

static const int64_t MATRIX_LARGE = 32; /* rows of one that has a block */

template <int THREADS> struct matrix_threads : line_of_threads<THREADS> {
    /* All threads of the matrix see what they have written. */
    static __device__ __forceinline__ void meet()
    {
        if (THREADS == GPU_WARP)
            __syncwarp();
        else
            __syncthreads();
    }
};

struct matrices {
    int64_t count, n, columns; /* columns: of what is solved for */
    int64_t room;              /* doubles of scratch for one */
    double *scratch;
};

/* two: scratch of one has another matrix, beside a matrix and an order. */
static inline matrices matrices_of(const keel_node *node, int64_t rows, bool two, void *scratch)
{
    const keel_shape &s = node->in[0].shape, &last = node->in[node->n_in - 1].shape;
    const int64_t n = s.dim[s.rank - 1];
    return { rows * (keel_row_count(&node->in[0]) / (n * n)), n, last.dim[last.rank - 1],
             n * n + n + (two ? n * n : 0), static_cast<double *>(scratch) };
}

static inline int64_t matrices_scratch(const matrices &m)
{
    return m.count * m.room * (int64_t)sizeof(double);
}

/* Launches kernel_of(width), where an integral constant says how many threads a matrix has: a block
 * if it is large. */
template <class K, class... A>
static void matrix_launch(const keel_call *c, bool large, int64_t count, K kernel_of, A... args)
{
    const auto launch = [&](auto width) {
        cuda_launch(c, kernel_of(width), matrix_threads<width()>::blocks(count), CUDA_THREADS, 0,
                    args...);
    };
    if (large)
        launch(std::integral_constant<int, CUDA_THREADS>());
    else
        launch(std::integral_constant<int, GPU_WARP>());
}

template <class K, class... A>
static void matrix_launch(const keel_call *c, const matrices &s, K kernel_of, A... args)
{
    matrix_launch(c, s.n > MATRIX_LARGE, s.count, kernel_of, args...);
}

struct matrix_larger {
    __device__ __forceinline__ double operator()(double a, double b) const
    {
        return a > b ? a : b;
    }
};

struct matrix_first {
    template <class T> __device__ __forceinline__ T operator()(T a, T b) const
    {
        return a < b ? a : b;
    }
};

/* The row from j on whose number in column j is the largest, the first of several. */
template <class THREADS>
static __device__ __forceinline__ int64_t lu_pivot(const double *a, int64_t n, int64_t j,
                                                   double *room)
{
    double most = -1;
    int64_t best = n;
    for (int64_t i = j + THREADS::number(); i < n; i += THREADS::WIDTH)
        most = matrix_larger()(fabs(a[i * n + j]), most);
    most = THREADS::fold(most, room, matrix_larger());
    for (int64_t i = n - 1 - THREADS::number(); i >= j; i -= THREADS::WIDTH)
        if (fabs(a[i * n + j]) == most) best = i;
    best = (int64_t)THREADS::fold((double)best, room, matrix_first());
    return best == n || !(fabs(a[j * n + j]) <= most) ? j : best; /* NaN stays */
}

/* As keel_lu. `room`: shared, for a fold. */
template <class THREADS>
static __device__ __forceinline__ double lu_of(double *a, int64_t n, double *order, double *room)
{
    double sign = 1;
    const int me = THREADS::number();
    for (int64_t i = me; i < n; i += THREADS::WIDTH) order[i] = (double)i;
    THREADS::meet();
    for (int64_t j = 0; j < n; j++) {
        const int64_t best = lu_pivot<THREADS>(a, n, j, room), left = n - j - 1;
        THREADS::meet(); /* what was looked at moves */
        if (best != j) {
            sign = -sign;
            for (int64_t k = me; k < n; k += THREADS::WIDTH) {
                const double x = a[j * n + k];
                a[j * n + k] = a[best * n + k];
                a[best * n + k] = x;
            }
            if (me == 0) {
                const double row = order[j];
                order[j] = order[best];
                order[best] = row;
            }
        }
        THREADS::meet();
        const double pivot = a[j * n + j];
        if (pivot == 0) continue; /* for all threads of the matrix */
        for (int64_t i = j + 1 + me; i < n; i += THREADS::WIDTH) a[i * n + j] /= pivot;
        THREADS::meet();
        for (int64_t t = me; t < left * left; t += THREADS::WIDTH) {
            int64_t i = t;
            const int64_t k = j + 1 + take(&i, left);
            i += j + 1;
            a[i * n + k] -= a[i * n + j] * a[j * n + k];
        }
        THREADS::meet();
    }
    return sign;
}

/* As keel_lu_solve, of one column by one thread: b(i), and `to` whose numbers are `stride` apart.
 */
template <class B>
static __device__ __forceinline__ void lu_solve(const double *lu, const double *order, int64_t n,
                                                B b, double *to, int64_t stride)
{
    for (int64_t i = 0; i < n; i++) {
        double x = b((int64_t)order[i]);
        for (int64_t k = 0; k < i; k++) x -= lu[i * n + k] * to[k * stride];
        to[i * stride] = x;
    }
    for (int64_t i = n - 1; i >= 0; i--) {
        double x = to[i * stride];
        for (int64_t k = i + 1; k < n; k++) x -= lu[i * n + k] * to[k * stride];
        to[i * stride] = x / lu[i * n + i];
    }
}

/* The inverse: a thread has a column. */
template <class THREADS>
static __device__ __forceinline__ void lu_inverse(const double *lu, const double *order, int64_t n,
                                                  double *to)
{
    for (int64_t j = THREADS::number(); j < n; j += THREADS::WIDTH)
        lu_solve(
            lu, order, n, [j](int64_t i) { return i == j ? 1.0 : 0.0; }, to + j, n);
    THREADS::meet();
}

/* The matrix at x in double. */
template <class THREADS, class T>
static __device__ __forceinline__ void matrix_copy(double *to, const T *x, int64_t n)
{
    for (int64_t i = THREADS::number(); i < n * n; i += THREADS::WIDTH) to[i] = to_f(x[i]);
    THREADS::meet();
}

/* The decomposition of the matrix at x, and its sign. */
template <class THREADS, class T>
static __device__ __forceinline__ double matrix_lu(double *lu, double *order, const T *x, int64_t n,
                                                   double *room)
{
    matrix_copy<THREADS>(lu, x, n);
    return lu_of<THREADS>(lu, n, order, room);
}

/* dx = by times the inverse transposed, or += */
template <class THREADS, class T>
static __device__ __forceinline__ void matrix_put_turned(T *dx, const double *inverse, double by,
                                                         int64_t n, bool adds)
{
    for (int64_t t = THREADS::number(); t < n * n; t += THREADS::WIDTH) {
        int64_t i = t;
        const int64_t j = take(&i, n);
        const double g = by * inverse[j * n + i];
        dx[t] = to_value<T>((float)(adds ? to_f(dx[t]) + g : g));
    }
}

#endif
