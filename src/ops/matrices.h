/* Small matrices [n, n], in double: the LU decomposition with the largest pivot of a column, and
 * what follows from it. What the ops determinant, inverse, solve and cholesky share. A matrix that
 * has no inverse gives infinities or NaN, which the engine reports. */
#ifndef KEEL_OPS_MATRICES_H
#define KEEL_OPS_MATRICES_H
#include "ops/infer.h"
#include <math.h>

/* Rows are one square matrix or several. */
static inline keel_status keel_matrices_check(const keel_node *n)
{
    const keel_shape *s = &n->in[0].shape;
    if (s->rank >= 2 && s->dim[s->rank - 1] == s->dim[s->rank - 2]) return KEEL_OK;
    return keel_fail(KEEL_ESHAPE, "%s: rows must be square matrices", n->op->name);
}

static inline int64_t keel_matrix_size(const keel_node *n)
{
    return n->in[0].shape.dim[n->in[0].shape.rank - 1];
}

/* Replaces a by L (below the diagonal, which is 1) and U. order[i]: which row of a became row i.
 * Returns the sign of that order. */
static inline double keel_lu(double *a, int64_t n, double *order)
{
    double sign = 1;
    for (int64_t i = 0; i < n; i++) order[i] = (double)i;
    for (int64_t j = 0; j < n; j++) {
        int64_t best = j;
        for (int64_t i = j + 1; i < n; i++)
            if (fabs(a[i * n + j]) > fabs(a[best * n + j])) best = i;
        if (best != j) {
            const double row = order[j];
            order[j] = order[best];
            order[best] = row;
            sign = -sign;
            for (int64_t k = 0; k < n; k++) {
                const double x = a[j * n + k];
                a[j * n + k] = a[best * n + k];
                a[best * n + k] = x;
            }
        }
        for (int64_t i = j + 1; i < n && a[j * n + j] != 0; i++) {
            const double f = a[i * n + j] /= a[j * n + j];
            for (int64_t k = j + 1; k < n; k++) a[i * n + k] -= f * a[j * n + k];
        }
    }
    return sign;
}

/* x of A x = b, for a column: b and x have the distance `stride` between numbers. `to`: [n]. */
static inline void keel_lu_solve(const double *lu, const double *order, int64_t n, const double *b,
                                 int64_t stride, double *to)
{
    for (int64_t i = 0; i < n; i++) {
        to[i] = b[(int64_t)order[i] * stride];
        for (int64_t k = 0; k < i; k++) to[i] -= lu[i * n + k] * to[k];
    }
    for (int64_t i = n - 1; i >= 0; i--) {
        for (int64_t k = i + 1; k < n; k++) to[i] -= lu[i * n + k] * to[k];
        to[i] /= lu[i * n + i];
    }
}

/* The inverse of A. `column`: room for 2 n. */
static inline void keel_lu_inverse(const double *lu, const double *order, int64_t n, double *column,
                                   double *to)
{
    double *one = column + n;
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = 0; i < n; i++) one[i] = i == j;
        keel_lu_solve(lu, order, n, one, 1, column);
        for (int64_t i = 0; i < n; i++) to[i * n + j] = column[i];
    }
}

/* Scratch of these: two matrices, an order and two columns. */
static inline int64_t keel_matrices_scratch(int64_t n)
{
    return (2 * n * n + 3 * n) * (int64_t)sizeof(double);
}

/* infer of an op that gives a matrix for each of its matrices. */
static inline keel_status keel_matrices_infer(keel_node *n)
{
    KEEL_TRY(keel_infer_like(n));
    KEEL_TRY(keel_matrices_check(n));
    n->scratch = keel_matrices_scratch(keel_matrix_size(n));
    return KEEL_OK;
}

#endif
