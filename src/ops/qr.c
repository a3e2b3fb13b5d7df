/* Q and R of Q R = A for matrices [.., M, N], M >= N, one under the other: [.., M + N, N]. Q has
 * orthonormal columns, R is an upper triangle. By Householder's reflections with the signs that
 * LAPACK and Eigen have: those of the diagonal of R are opposite to the first elements that are
 * reflected. Keras: ops.qr.
 *
 * With W = R dR^T - dQ^T Q, of which the lower triangle and its mirror image is S, the gradient of
 * A is (dQ + Q S) R^-T (Walter, Lehmann 2012). */
#ifndef REAL
#include "ops/infer.h"
#include <math.h>

static keel_status infer(keel_node *n)
{
    KEEL_TRY(keel_infer_check(n, 1, 0, 0));
    keel_shape out = n->in[0].shape;
    const int r = out.rank;
    if (r < 2 || out.dim[r - 2] < out.dim[r - 1])
        return keel_fail(r < 2 ? KEEL_ESHAPE : KEEL_EUNSUP,
                         "qr: rows must be matrices with as many rows as columns or more");
    const int64_t m = out.dim[r - 2], k = out.dim[r - 1];
    n->scratch = 3 * m * k * (int64_t)sizeof(double);
    out.dim[r - 2] += k;
    return keel_infer_out(n, &out);
}

typedef struct dims {
    int64_t matrices, m, n;
} dims;

static dims dims_of(const keel_call *c)
{
    const keel_shape *s = &c->node->in[0].shape;
    const int64_t m = s->dim[s->rank - 2], n = s->dim[s->rank - 1];
    return (dims){ c->rows * (keel_row_count(&c->node->in[0]) / (m * n)), m, n };
}

/* a -= 2 v (v^T a) / |v|^2, for the columns from `first` on and the rows from `j` on. */
static void reflect(double *a, const dims *d, const double *v, int64_t j, int64_t first)
{
    double square = 0;
    for (int64_t i = j; i < d->m; i++) square += v[i] * v[i];
    for (int64_t k = first; k < d->n && square > 0; k++) {
        double sum = 0;
        for (int64_t i = j; i < d->m; i++) sum += v[i] * a[i * d->n + k];
        for (int64_t i = j; i < d->m; i++) a[i * d->n + k] -= 2 * sum / square * v[i];
    }
}

/* The vector of reflection j, from column j of what the earlier ones have left. */
static void vector_of(const double *a, const dims *d, int64_t j, double *v)
{
    double square = 0;
    for (int64_t i = j; i < d->m; i++) {
        v[i] = a[i * d->n + j];
        square += v[i] * v[i];
    }
    const bool done = square == v[j] * v[j]; /* there is nothing below the diagonal */
    for (int64_t i = j; done && i < d->m; i++) v[i] = 0;
    if (!done) v[j] += v[j] >= 0 ? sqrt(square) : -sqrt(square);
}

#define REAL_FILE "ops/qr.c"
#include "ops/real.h"

const keel_op keel_op_qr = {
    .name = "qr",
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_OUT,
    .cases =
        (const keel_case[]){ { "4,3", NULL, NULL }, { "2,2,2", NULL, NULL }, { NULL, NULL, NULL } },
};
#else
static void REAL_(forward)(const keel_call *c)
{
    const dims d = dims_of(c);
    double *a = c->scratch, *q = a + d.m * d.n, *v = q + d.m * d.n; /* v: [N, M] */
    for (int64_t t = 0; t < d.matrices; t++) {
        const REAL *x = (const REAL *)c->in[0] + t * d.m * d.n;
        REAL *y = (REAL *)c->out[0] + t * (d.m + d.n) * d.n;
        for (int64_t i = 0; i < d.m * d.n; i++) {
            a[i] = (double)x[i];
            q[i] = i % d.n == i / d.n;
        }
        for (int64_t j = 0; j < d.n; j++) {
            vector_of(a, &d, j, v + j * d.m);
            reflect(a, &d, v + j * d.m, j, j);
        }
        for (int64_t j = d.n - 1; j >= 0; j--) reflect(q, &d, v + j * d.m, j, 0);
        for (int64_t i = 0; i < d.m * d.n; i++) y[i] = (REAL)q[i];
        for (int64_t i = 0; i < d.n * d.n; i++)
            y[d.m * d.n + i] = (REAL)(i % d.n >= i / d.n ? a[i] : 0);
    }
}

/* S, of which only the lower triangle of W is needed: [N, N]. */
static void REAL_(middle)(const dims *d, const REAL *y, const REAL *dy, double *s)
{
    const REAL *r = y + d->m * d->n, *dr = dy + d->m * d->n;
    for (int64_t i = 0; i < d->n; i++)
        for (int64_t j = 0; j <= i; j++) {
            double sum = 0;
            for (int64_t k = i; k < d->n; k++) /* R and dR are upper triangles */
                sum += (double)r[i * d->n + k] * (k >= j ? (double)dr[j * d->n + k] : 0);
            for (int64_t k = 0; k < d->m; k++)
                sum -= (double)dy[k * d->n + i] * (double)y[k * d->n + j];
            s[i * d->n + j] = s[j * d->n + i] = sum;
        }
}

static void REAL_(backward)(const keel_call *c)
{
    const dims d = dims_of(c);
    double *s = c->scratch, *line = s + d.n * d.n;
    REAL *dx = c->in_grad[0];
    for (int64_t t = 0; dx && t < d.matrices; t++) {
        const REAL *y = (const REAL *)c->out[0] + t * (d.m + d.n) * d.n;
        const REAL *dy = (const REAL *)c->out_grad[0] + t * (d.m + d.n) * d.n;
        const REAL *r = y + d.m * d.n;
        REAL_(middle)(&d, y, dy, s);
        for (int64_t i = 0; i < d.m; i++, dx += d.n) {
            for (int64_t j = 0; j < d.n; j++) {
                line[j] = (double)dy[i * d.n + j];
                for (int64_t k = 0; k < d.n; k++)
                    line[j] += (double)y[i * d.n + k] * s[k * d.n + j];
            }
            for (int64_t j = d.n - 1; j >= 0; j--) { /* x R^T = line */
                for (int64_t k = j + 1; k < d.n; k++) line[j] -= (double)r[j * d.n + k] * line[k];
                line[j] /= (double)r[j * d.n + j];
            }
            for (int64_t j = 0; j < d.n; j++)
                dx[j] = (REAL)(c->in_adds[0] ? dx[j] + line[j] : line[j]);
        }
    }
}
#endif
