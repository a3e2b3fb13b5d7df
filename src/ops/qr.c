/* Q and R of Q R = A for matrices [.., M, N], M >= N, one beside the other: [.., M, C + N]. Q has C
 * orthonormal columns, N of them, or M if the decomposition is complete; R is an upper triangle
 * with rows of zeros below. By Householder's reflections with the signs that LAPACK and Eigen have:
 * those of the diagonal of R are opposite to the first elements that are reflected. Keras: ops.qr.
 *
 * With W = R dR^T - dQ^T Q, of which the lower triangle and its mirror image is S, the gradient of
 * A is (dQ + Q S) R^-T (Walter, Lehmann 2012), for the first N columns of Q.
 *
 * The other columns, Q', are no function of A, but of the first ones, because the same reflections
 * make both: Q' = I' + (Q - I) Z^T with Z = L (U - I)^-1, where U is Q without its lower rows, L,
 * and I and I' are columns of the identity (arXiv 2409.13374; so does JAX). A column that needs no
 * reflection leaves U - I without an inverse, and the gradient is not finite. */
#ifndef REAL
#include "ops/qr.h"
#include "ops/infer.h"
#include <math.h>
#include <string.h>

typedef struct dims {
    int64_t matrices, m, n, c;
} dims;

static keel_status infer(keel_node *n)
{
    KEEL_TRY(keel_infer_check(n, 1, 0, 0));
    keel_shape out = n->in[0].shape;
    const int r = out.rank;
    if (r < 2 || out.dim[r - 2] < out.dim[r - 1])
        return keel_fail(r < 2 ? KEEL_ESHAPE : KEEL_EUNSUP,
                         "qr: rows must be matrices with as many rows as columns or more");
    const int64_t m = out.dim[r - 2], k = out.dim[r - 1];
    const int64_t columns = ((const keel_qr_args *)n->args)->complete ? m : k;
    n->scratch = (m * (columns + 2 * k) + (2 * m + 1) * k) * (int64_t)sizeof(double);
    out.dim[r - 1] += columns;
    return keel_infer_out(n, &out);
}

static dims dims_of(const keel_call *c)
{
    const keel_shape *s = &c->node->in[0].shape;
    const int64_t m = s->dim[s->rank - 2], n = s->dim[s->rank - 1];
    return (dims){ c->rows * (keel_row_count(&c->node->in[0]) / (m * n)), m, n,
                   ((const keel_qr_args *)c->node->args)->complete ? m : n };
}

/* a -= 2 v (v^T a) / |v|^2, for the columns of `count` from `first` on and the rows from `j` on. */
static void reflect(double *a, int64_t count, const dims *d, const double *v, int64_t j,
                    int64_t first)
{
    double square = 0;
    for (int64_t i = j; i < d->m; i++) square += v[i] * v[i];
    for (int64_t k = first; k < count && square > 0; k++) {
        double sum = 0;
        for (int64_t i = j; i < d->m; i++) sum += v[i] * a[i * count + k];
        for (int64_t i = j; i < d->m; i++) a[i * count + k] -= 2 * sum / square * v[i];
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

/* x [N, P] becomes the solution of b x = x; b [N, N] is used up. Gauss, with pivots. */
static void solve(double *b, double *x, int64_t n, int64_t p)
{
    for (int64_t j = 0; j < n; j++) {
        int64_t best = j;
        for (int64_t i = j + 1; i < n; i++)
            if (fabs(b[i * n + j]) > fabs(b[best * n + j])) best = i;
        for (int64_t k = 0; k < n + p && best != j; k++) {
            double *one = k < n ? &b[j * n + k] : &x[j * p + k - n];
            double *other = k < n ? &b[best * n + k] : &x[best * p + k - n];
            const double kept = *one;
            *one = *other;
            *other = kept;
        }
        for (int64_t i = j + 1; i < n; i++) {
            const double times = b[i * n + j] / b[j * n + j];
            for (int64_t k = j; k < n; k++) b[i * n + k] -= times * b[j * n + k];
            for (int64_t k = 0; k < p; k++) x[i * p + k] -= times * x[j * p + k];
        }
    }
    for (int64_t i = n - 1; i >= 0; i--)
        for (int64_t k = 0; k < p; k++) {
            for (int64_t j = i + 1; j < n; j++) x[i * p + k] -= b[i * n + j] * x[j * p + k];
            x[i * p + k] /= b[i * n + i];
        }
}

#define REAL_FILE "ops/qr.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    *(keel_qr_args *)args = (keel_qr_args){ .complete = keel_case_has(text, "complete") };
}

const keel_op keel_op_qr = {
    .name = "qr",
    .args_size = sizeof(keel_qr_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_OUT,
    .cases = (const keel_case[]){ { "4,3", NULL, NULL },
                                  { "2,2,2", NULL, NULL },
                                  { "4,3", NULL, "complete" },
                                  { "2,5,2", NULL, "complete" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
static void REAL_(forward)(const keel_call *c)
{
    const dims d = dims_of(c);
    double *a = c->scratch, *q = a + d.m * d.n, *v = q + d.m * d.c; /* v: [N, M] */
    for (int64_t t = 0; t < d.matrices; t++) {
        const REAL *x = (const REAL *)c->in[0] + t * d.m * d.n;
        REAL *y = (REAL *)c->out[0] + t * d.m * (d.c + d.n);
        for (int64_t i = 0; i < d.m * d.n; i++) a[i] = (double)x[i];
        for (int64_t i = 0; i < d.m * d.c; i++) q[i] = i % d.c == i / d.c;
        for (int64_t j = 0; j < d.n; j++) {
            vector_of(a, &d, j, v + j * d.m);
            reflect(a, d.n, &d, v + j * d.m, j, j);
        }
        for (int64_t j = d.n - 1; j >= 0; j--) reflect(q, d.c, &d, v + j * d.m, j, 0);
        for (int64_t i = 0; i < d.m; i++, y += d.c + d.n) {
            for (int64_t j = 0; j < d.c; j++) y[j] = (REAL)q[i * d.c + j];
            for (int64_t j = 0; j < d.n; j++) y[d.c + j] = (REAL)(j >= i ? a[i * d.n + j] : 0);
        }
    }
}

/* Adds to the gradients of the first columns, in g [M, C], what those of the others make of them:
 * b [N, N] and x [N, M - N] are scratch. */
static void REAL_(others)(const dims *d, const REAL *y, double *g, double *b, double *x)
{
    const int64_t n = d->n, c = d->c, p = c - n, line = c + n;
    for (int64_t i = 0; i < n; i++) /* (U - I)^T Z^T = L^T */
        for (int64_t j = 0; j < n; j++) b[i * n + j] = (double)y[j * line + i] - (i == j);
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < p; k++) x[i * p + k] = (double)y[(n + k) * line + i];
    solve(b, x, n, p);
    double *h = x + n * p; /* the gradient of Z^T, and then (U - I) h = it */
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < p; k++) {
            double sum = -g[i * c + n + k];
            for (int64_t row = 0; row < d->m; row++)
                sum += (double)y[row * line + i] * g[row * c + n + k];
            h[i * p + k] = sum;
        }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) b[i * n + j] = (double)y[i * line + j] - (i == j);
    solve(b, h, n, p);
    for (int64_t i = 0; i < d->m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = i < n ? 0 : h[j * p + i - n];
            for (int64_t k = 0; k < p; k++) {
                sum += g[i * c + n + k] * x[j * p + k];
                if (i < n) sum -= x[i * p + k] * h[j * p + k];
            }
            g[i * c + j] += sum;
        }
}

/* S, of which only the lower triangle of W is needed: [N, N]. */
static void REAL_(middle)(const dims *d, const REAL *y, const REAL *dy, const double *g, double *s)
{
    const int64_t line = d->c + d->n;
    const REAL *r = y + d->c, *dr = dy + d->c;
    for (int64_t i = 0; i < d->n; i++)
        for (int64_t j = 0; j <= i; j++) {
            double sum = 0;
            for (int64_t k = i; k < d->n; k++) /* R and dR are upper triangles */
                sum += (double)r[i * line + k] * (k >= j ? (double)dr[j * line + k] : 0);
            for (int64_t k = 0; k < d->m; k++) sum -= g[k * d->c + i] * (double)y[k * line + j];
            s[i * d->n + j] = s[j * d->n + i] = sum;
        }
}

static void REAL_(backward)(const keel_call *c)
{
    const dims d = dims_of(c);
    const int64_t size = d.c + d.n;
    double *g = c->scratch, *s = g + d.m * d.c, *line = s + d.n * d.n;
    REAL *dx = c->in_grad[0];
    for (int64_t t = 0; dx && t < d.matrices; t++) {
        const REAL *y = (const REAL *)c->out[0] + t * d.m * size;
        const REAL *dy = (const REAL *)c->out_grad[0] + t * d.m * size;
        const REAL *r = y + d.c;
        for (int64_t i = 0; i < d.m * d.c; i++) g[i] = (double)dy[i / d.c * size + i % d.c];
        if (d.c > d.n) REAL_(others)(&d, y, g, s, line);
        REAL_(middle)(&d, y, dy, g, s);
        for (int64_t i = 0; i < d.m; i++, dx += d.n) {
            for (int64_t j = 0; j < d.n; j++) {
                line[j] = g[i * d.c + j];
                for (int64_t k = 0; k < d.n; k++)
                    line[j] += (double)y[i * size + k] * s[k * d.n + j];
            }
            for (int64_t j = d.n - 1; j >= 0; j--) { /* x R^T = line */
                for (int64_t k = j + 1; k < d.n; k++) line[j] -= (double)r[j * size + k] * line[k];
                line[j] /= (double)r[j * size + j];
            }
            for (int64_t j = 0; j < d.n; j++)
                dx[j] = (REAL)(c->in_adds[0] ? dx[j] + line[j] : line[j]);
        }
    }
}
#endif
