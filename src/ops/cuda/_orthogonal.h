/* Singular values of many small matrices, in double, as ops/singular_values.h: a warp or a block
 * turns pairs of columns of its matrix until all are orthogonal. */
#ifndef KEEL_OPS_CUDA_ORTHOGONAL_H
#define KEEL_OPS_CUDA_ORTHOGONAL_H
#include "ops/cuda/_matrices.h"
extern "C" {
#include "ops/singular_values.h"
}

/* Of one, in scratch: U S [m, n], V [n, n], the singular values [n], and room for as many. */
struct orthogonal {
    double *a, *v, *value, *more;
};

static __host__ __device__ __forceinline__ int64_t orthogonal_room(const keel_tall &t)
{
    return t.m * t.n + t.n * t.n + 2 * t.n; /* doubles */
}

static __device__ __forceinline__ orthogonal orthogonal_at(double *scratch, const keel_tall &t,
                                                           int64_t matrix)
{
    double *a = scratch + matrix * orthogonal_room(t), *v = a + t.m * t.n, *value = v + t.n * t.n;
    return { a, v, value, value + t.n };
}

/* As keel_tall_at. */
static __device__ __forceinline__ int64_t tall_at(const keel_tall &t, int64_t i, int64_t k)
{
    return t.turned ? k * t.columns + i : i * t.columns + k;
}

/* Turns columns p and q of a line [n]. */
static __device__ __forceinline__ void orthogonal_turn(double *line, int64_t p, int64_t q,
                                                       double cosine, double sine)
{
    const double x = line[p], y = line[q];
    line[p] = times(cosine, x) - times(sine, y);
    line[q] = times(sine, x) + times(cosine, y);
}

/* Of the matrix at x. `room`: shared, for a fold. */
template <class THREADS, class T>
static __device__ __forceinline__ void orthogonal_of(const orthogonal &o, const T *x,
                                                     const keel_tall &t, double *room)
{
    const int me = THREADS::number();
    const int64_t n = t.n;
    for (int64_t e = me; e < t.m * n; e += THREADS::WIDTH) {
        int64_t i = e;
        const int64_t k = take(&i, n);
        o.a[e] = to_f(x[tall_at(t, i, k)]);
    }
    for (int64_t e = me; e < n * n; e += THREADS::WIDTH) {
        int64_t i = e;
        const int64_t k = take(&i, n);
        o.v[e] = i == k ? 1 : 0;
    }
    THREADS::meet();
    for (int sweep = 0; sweep < 60; sweep++) {
        double off = 0; /* the same for all threads of the matrix, as all of the folds are */
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++) {
                double pp = 0, qq = 0, pq = 0;
                for (int64_t i = me; i < t.m; i += THREADS::WIDTH) {
                    const double y = o.a[i * n + p], z = o.a[i * n + q];
                    pp += times(y, y);
                    qq += times(z, z);
                    pq += times(y, z);
                }
                pp = THREADS::fold(pp, room, gpu_plus());
                qq = THREADS::fold(qq, room, gpu_plus());
                pq = THREADS::fold(pq, room, gpu_plus());
                const double most = sqrt(pp * qq);
                if (!(fabs(pq) > 1e-16 * most)) continue;
                off = fmax(off, fabs(pq) / most);
                const double zeta = (qq - pp) / (2 * pq), size = fabs(zeta);
                const double tangent = copysign(1 / (size + sqrt(1 + zeta * zeta)), zeta);
                const double cosine = 1 / sqrt(1 + tangent * tangent), sine = cosine * tangent;
                for (int64_t i = me; i < t.m; i += THREADS::WIDTH)
                    orthogonal_turn(o.a + i * n, p, q, cosine, sine);
                for (int64_t i = me; i < n; i += THREADS::WIDTH)
                    orthogonal_turn(o.v + i * n, p, q, cosine, sine);
            }
        if (off < 1e-15) break;
    }
    THREADS::meet();
    for (int64_t k = me; k < n; k += THREADS::WIDTH) {
        double square = 0;
        for (int64_t i = 0; i < t.m; i++) square += o.a[i * n + k] * o.a[i * n + k];
        o.value[k] = sqrt(square);
    }
    THREADS::meet();
}

template <class K, class... A>
static void orthogonal_launch(const keel_call *c, const keel_tall &t, K kernel_of, A... args)
{
    matrix_launch(c, t.m > 4 * MATRIX_LARGE, t.matrices, kernel_of, args...);
}

#endif
