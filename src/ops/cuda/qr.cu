/* See ops/qr.c. A warp or a block has a matrix, and a thread of it a column that is reflected, or a
 * row of the gradient. */
#include "ops/cuda/_matrices.h"
extern "C" {
#include "ops/qr.h"
}

namespace
{
struct dims {
    int64_t count, m, n, c, room; /* c: columns of Q; room: doubles of scratch for one */
    double *scratch;
};

/* a -= 2 v (v^T a) / |v|^2, for the columns of `count` from `first` on and the rows from `j` on. */
template <class THREADS>
__device__ __forceinline__ void reflect(double *a, int64_t count, const dims &d, const double *v,
                                        int64_t j, int64_t first)
{
    double square = 0;
    for (int64_t i = j; i < d.m; i++) square += v[i] * v[i];
    for (int64_t k = first + THREADS::number(); k < count && square > 0; k += THREADS::WIDTH) {
        double sum = 0;
        for (int64_t i = j; i < d.m; i++) sum += v[i] * a[i * count + k];
        for (int64_t i = j; i < d.m; i++) a[i * count + k] -= 2 * sum / square * v[i];
    }
    THREADS::meet();
}

/* The vector of reflection j, from column j of what the earlier ones have left. */
template <class THREADS>
__device__ __forceinline__ void vector_of(const double *a, const dims &d, int64_t j, double *v)
{
    const double first = a[j * d.n + j];
    double square = 0;
    for (int64_t i = j; i < d.m; i++) square += times(a[i * d.n + j], a[i * d.n + j]);
    const bool done = square == times(first, first); /* there is nothing below the diagonal */
    for (int64_t i = j + THREADS::number(); i < d.m; i += THREADS::WIDTH) {
        const double more = i == j ? copysign(sqrt(square), first >= 0 ? 1.0 : -1.0) : 0;
        v[i] = done ? 0 : a[i * d.n + j] + more;
    }
    THREADS::meet();
}

template <int WIDTH, class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    forward_kernel(T *all_y, const T *x, const dims d)
{
    typedef matrix_threads<WIDTH> threads;
    const int64_t size = d.c + d.n;
    for (int64_t t = threads::first_line(); t < d.count; t += threads::step()) {
        double *a = d.scratch + t * d.room, *q = a + d.m * d.n, *v = q + d.m * d.c;
        T *y = all_y + t * d.m * size;
        for (int64_t e = threads::number(); e < d.m * d.n; e += WIDTH)
            a[e] = to_f(x[t * d.m * d.n + e]);
        for (int64_t e = threads::number(); e < d.m * d.c; e += WIDTH) {
            int64_t i = e;
            const int64_t k = take(&i, d.c);
            q[e] = i == k ? 1 : 0;
        }
        threads::meet();
        for (int64_t j = 0; j < d.n; j++) {
            vector_of<threads>(a, d, j, v + j * d.m);
            reflect<threads>(a, d.n, d, v + j * d.m, j, j);
        }
        for (int64_t j = d.n - 1; j >= 0; j--) reflect<threads>(q, d.c, d, v + j * d.m, j, 0);
        for (int64_t e = threads::number(); e < d.m * size; e += WIDTH) {
            int64_t i = e;
            const int64_t k = take(&i, size), j = k - d.c;
            const double r = j >= i ? a[i * d.n + (j < 0 ? 0 : j)] : 0;
            y[e] = to_value<T>((float)(k < d.c ? q[i * d.c + k] : r));
        }
    }
}

/* What lies in scratch, of one, backward: the gradient of Q [M, C], S or a matrix that is used up
 * [N, N], its order [N], three of [N, C - N], and the rows that are solved for [M, N]. */
struct rooms {
    double *g, *s, *order, *x, *h, *right, *line;
};

__device__ __forceinline__ rooms rooms_of(const dims &d, int64_t t)
{
    const int64_t p = d.n * (d.c - d.n);
    rooms r;
    r.g = d.scratch + t * d.room;
    r.s = r.g + d.m * d.c;
    r.order = r.s + d.n * d.n;
    r.x = r.order + d.n;
    r.h = r.x + p;
    r.right = r.h + p;
    r.line = r.right + p;
    return r;
}

int64_t back_room(const dims &d)
{
    return d.m * d.c + d.n * d.n + d.n + 3 * d.n * (d.c - d.n) + d.m * d.n;
}

/* to [N, P] of (U - I) to = r.right, or of its transpose: a thread has a column. */
template <class THREADS, class T>
__device__ __forceinline__ void solve(const dims &d, const rooms &r, const T *y, bool turned,
                                      double *to, double *room)
{
    const int64_t n = d.n, p = d.c - n, size = d.c + n;
    for (int64_t e = THREADS::number(); e < n * n; e += THREADS::WIDTH) {
        int64_t i = e;
        const int64_t j = take(&i, n);
        r.s[e] = to_f(y[turned ? j * size + i : i * size + j]) - (i == j ? 1 : 0);
    }
    THREADS::meet();
    lu_of<THREADS>(r.s, n, r.order, room);
    for (int64_t k = THREADS::number(); k < p; k += THREADS::WIDTH)
        lu_solve(
            r.s, r.order, n, [&](int64_t i) { return r.right[i * p + k]; }, to + k, p);
    THREADS::meet();
}

/* Adds to the gradients of the first columns, in r.g, what those of the others make of them. */
template <class THREADS, class T>
__device__ __forceinline__ void others(const dims &d, const rooms &r, const T *y, double *room)
{
    const int64_t n = d.n, c = d.c, p = c - n, size = c + n;
    for (int64_t e = THREADS::number(); e < n * p; e += THREADS::WIDTH) {
        int64_t i = e;
        const int64_t k = take(&i, p);
        r.right[e] = to_f(y[(n + k) * size + i]);
    }
    THREADS::meet();
    solve<THREADS>(d, r, y, true, r.x, room); /* (U - I)^T Z^T = L^T */
    for (int64_t e = THREADS::number(); e < n * p; e += THREADS::WIDTH) {
        int64_t i = e;
        const int64_t k = take(&i, p);
        double sum = -r.g[i * c + n + k];
        for (int64_t row = 0; row < d.m; row++)
            sum += to_f(y[row * size + i]) * r.g[row * c + n + k];
        r.right[e] = sum; /* the gradient of Z^T */
    }
    THREADS::meet();
    solve<THREADS>(d, r, y, false, r.h, room);
    for (int64_t e = THREADS::number(); e < d.m * n; e += THREADS::WIDTH) {
        int64_t i = e;
        const int64_t j = take(&i, n);
        double sum = i < n ? 0 : r.h[j * p + i - n];
        for (int64_t k = 0; k < p; k++) {
            sum += r.g[i * c + n + k] * r.x[j * p + k];
            if (i < n) sum -= r.x[i * p + k] * r.h[j * p + k];
        }
        r.g[i * c + j] += sum;
    }
    THREADS::meet();
}

template <int WIDTH, class T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    backward_kernel(T *dx, const T *all_y, const T *all_dy, const dims d, bool adds)
{
    typedef matrix_threads<WIDTH> threads;
    SHARED(double, room, 33);
    const int64_t size = d.c + d.n;
    for (int64_t t = threads::first_line(); t < d.count; t += threads::step()) {
        const rooms r = rooms_of(d, t);
        const T *y = all_y + t * d.m * size, *dy = all_dy + t * d.m * size;
        for (int64_t e = threads::number(); e < d.m * d.c; e += WIDTH) {
            int64_t i = e;
            const int64_t k = take(&i, d.c);
            r.g[e] = to_f(dy[i * size + k]);
        }
        threads::meet();
        if (d.c > d.n) others<threads>(d, r, y, room);
        for (int64_t e = threads::number(); e < d.n * d.n; e += WIDTH) { /* S, of W's lower half */
            int64_t row = e;
            const int64_t column = take(&row, d.n);
            const int64_t i = row > column ? row : column, j = row > column ? column : row;
            double sum = 0;
            for (int64_t k = i; k < d.n; k++) /* R and dR are upper triangles */
                sum += (double)to_f(y[i * size + d.c + k]) * (double)to_f(dy[j * size + d.c + k]);
            for (int64_t k = 0; k < d.m; k++) sum -= r.g[k * d.c + i] * to_f(y[k * size + j]);
            r.s[e] = sum;
        }
        threads::meet();
        for (int64_t i = threads::number(); i < d.m; i += WIDTH) { /* x R^T = line */
            double *line = r.line + i * d.n;
            for (int64_t j = 0; j < d.n; j++) {
                double sum = r.g[i * d.c + j];
                for (int64_t k = 0; k < d.n; k++) sum += to_f(y[i * size + k]) * r.s[k * d.n + j];
                line[j] = sum;
            }
            for (int64_t j = d.n - 1; j >= 0; j--) {
                double v = line[j];
                for (int64_t k = j + 1; k < d.n; k++) v -= to_f(y[j * size + d.c + k]) * line[k];
                v /= to_f(y[j * size + d.c + j]);
                line[j] = v;
                T *to = dx + (t * d.m + i) * d.n + j;
                *to = to_value<T>((float)(adds ? to_f(*to) + v : v));
            }
        }
    }
}

dims dims_of(const keel_node *node, int64_t rows, bool back, void *scratch)
{
    const keel_shape &s = node->in[0].shape;
    const int64_t m = s.dim[s.rank - 2], n = s.dim[s.rank - 1];
    const bool complete = static_cast<const keel_qr_args *>(node->args)->complete;
    dims d = { rows * (keel_row_count(&node->in[0]) / (m * n)),
               m,
               n,
               complete ? m : n,
               0,
               static_cast<double *>(scratch) };
    d.room = back ? back_room(d) : 2 * m * n + m * d.c;
    return d;
}

template <class T> void forward(const keel_call *c)
{
    const dims d = dims_of(c->node, c->rows, false, c->scratch);
    matrix_launch(
        c, d.m > MATRIX_LARGE, d.count, [](auto width) { return forward_kernel<width(), T>; },
        cuda_out<T>(c), cuda_in<T>(c, 0), d);
}

template <class T> void backward(const keel_call *c)
{
    const dims d = dims_of(c->node, c->rows, true, c->scratch);
    if (!c->in_grad[0]) return;
    matrix_launch(
        c, d.m > MATRIX_LARGE, d.count, [](auto width) { return backward_kernel<width(), T>; },
        cuda_in_grad<T>(c, 0), cuda_out<T>(c), cuda_out_grad<T>(c), d, c->in_adds[0]);
}

keel_status prepare(keel_prepare *p)
{
    const dims d = dims_of(p->node, p->rows, p->pass == KEEL_BACKWARD, nullptr);
    return cuda_prepare(p, d.count * d.room * (int64_t)sizeof(double));
}
} // namespace

CUDA_KERNEL(qr) = { .op = &keel_op_qr,
                    .name = "cuda",
                    .prepare = prepare,
                    .run = { forward<float>, backward<float> },
                    .narrow = { forward<bf16>, backward<bf16> },
                    .half = { forward<f16>, backward<f16> } };
