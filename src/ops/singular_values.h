/* Singular values of small matrices, in double: one-sided Jacobi rotations (Hestenes 1958), which
 * make the columns of A orthogonal. What the ops singular_values and pseudo_inverse share. */
#ifndef KEEL_OPS_SINGULAR_VALUES_H
#define KEEL_OPS_SINGULAR_VALUES_H
#include "ops/infer.h"
#include <math.h>

/* A as [m, n], m >= n, of which the columns are turned into U S; v [n, n] becomes the product of
 * the rotations, so A = (U S) V^T. */
static inline void keel_orthogonalise(double *a, double *v, int64_t m, int64_t n)
{
    for (int64_t i = 0; i < n * n; i++) v[i] = i / n == i % n;
    for (int sweep = 0; sweep < 60; sweep++) {
        double off = 0;
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++) {
                double pp = 0, qq = 0, pq = 0;
                for (int64_t i = 0; i < m; i++) {
                    pp += a[i * n + p] * a[i * n + p];
                    qq += a[i * n + q] * a[i * n + q];
                    pq += a[i * n + p] * a[i * n + q];
                }
                if (!(fabs(pq) > 1e-16 * sqrt(pp * qq))) continue;
                off = fmax(off, fabs(pq) / sqrt(pp * qq));
                const double zeta = (qq - pp) / (2 * pq);
                const double t = copysign(1, zeta) / (fabs(zeta) + sqrt(1 + zeta * zeta));
                const double cosine = 1 / sqrt(1 + t * t), sine = cosine * t;
                for (int64_t i = 0; i < m + n; i++) {
                    double *line = i < m ? a + i * n : v + (i - m) * n;
                    const double x = line[p], y = line[q];
                    line[p] = cosine * x - sine * y;
                    line[q] = sine * x + cosine * y;
                }
            }
        if (off < 1e-15) break;
    }
}

/* Dims of rows: matrices [M, N]; the taller side first. */
typedef struct keel_tall {
    int64_t matrices, rows, columns, m, n;
    bool turned; /* A is wider than tall, so its transpose is worked on */
} keel_tall;

static inline keel_tall keel_tall_of(const keel_spec *s, int64_t rows)
{
    keel_tall t = { .rows = s->shape.dim[s->shape.rank - 2],
                    .columns = s->shape.dim[s->shape.rank - 1] };
    t.turned = t.rows < t.columns;
    t.m = t.turned ? t.columns : t.rows;
    t.n = t.turned ? t.rows : t.columns;
    t.matrices = rows * (keel_row_count(s) / (t.rows * t.columns));
    return t;
}

/* Where element (i, k) of the tall matrix is in A. */
static inline int64_t keel_tall_at(const keel_tall *t, int64_t i, int64_t k)
{
    return t->turned ? k * t->columns + i : i * t->columns + k;
}

static inline double keel_column_length(const double *a, int64_t m, int64_t n, int64_t k)
{
    double square = 0;
    for (int64_t i = 0; i < m; i++) square += a[i * n + k] * a[i * n + k];
    return sqrt(square);
}

static inline int64_t keel_tall_scratch(const keel_tall *t)
{
    return (2 * t->m * t->n + 3 * t->n * t->n + 2 * t->n) * (int64_t)sizeof(double);
}

#endif
