/* The lower triangle L of L L^T = A, for symmetric matrices [.., N, N]; of others the mean of A and
 * A^T is taken. Keras: ops.cholesky. A matrix that is not positive definite gives NaN.
 *
 * With P the lower triangle of L^T dL, its diagonal halved, the gradient of A is the mean of
 * L^-T P L^-1 and its transpose (Murray 2016). */
#ifndef REAL
#include "ops/matrices.h"

#define REAL_FILE "ops/cholesky.c"
#include "ops/real.h"

const keel_op keel_op_cholesky = {
    .name = "cholesky",
    .infer = keel_matrices_infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_OUT,
    .cases = (const keel_case[]){ { "3,3", NULL, "definite" },
                                  { "2,2,2", NULL, "definite" },
                                  { NULL, NULL, NULL } },
};
#else
static void REAL_(forward)(const keel_call *c)
{
    const int64_t n = keel_matrix_size(c->node);
    const int64_t count = c->rows * (keel_row_count(&c->node->in[0]) / (n * n));
    double *l = c->scratch;
    const REAL *x = c->in[0];
    REAL *y = c->out[0];
    for (int64_t m = 0; m < count; m++, x += n * n, y += n * n) {
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) {
                double sum = ((double)x[i * n + j] + (double)x[j * n + i]) / 2;
                for (int64_t k = 0; k < j && j <= i; k++) sum -= l[i * n + k] * l[j * n + k];
                l[i * n + j] = j > i ? 0 : j == i ? sqrt(sum) : sum / l[j * n + j];
            }
        for (int64_t i = 0; i < n * n; i++) y[i] = (REAL)l[i];
    }
}

/* x = L^-T b for a column of numbers `stride` apart, in place. */
static void REAL_(solve)(const REAL *l, int64_t n, double *b, int64_t stride)
{
    for (int64_t i = n - 1; i >= 0; i--) {
        for (int64_t k = i + 1; k < n; k++) b[i * stride] -= (double)l[k * n + i] * b[k * stride];
        b[i * stride] /= (double)l[i * n + i];
    }
}

static void REAL_(backward)(const keel_call *c)
{
    const int64_t n = keel_matrix_size(c->node);
    const int64_t count = c->rows * (keel_row_count(&c->node->in[0]) / (n * n));
    double *p = c->scratch;
    const REAL *l = c->out[0], *dl = c->out_grad[0];
    REAL *dx = c->in_grad[0];
    for (int64_t m = 0; dx && m < count; m++, l += n * n, dl += n * n, dx += n * n) {
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) {
                double sum = 0;
                for (int64_t k = i; k < n && j <= i; k++)
                    sum += (double)l[k * n + i] * (k >= j ? (double)dl[k * n + j] : 0);
                p[i * n + j] = i == j ? sum / 2 : sum;
            }
        for (int64_t j = 0; j < n; j++) REAL_(solve)(l, n, p + j, n);     /* L^-T P */
        for (int64_t i = 0; i < n; i++) REAL_(solve)(l, n, p + i * n, 1); /* times L^-1 */
        for (int64_t i = 0; i < n * n; i++) {
            const double g = (p[i] + p[i % n * n + i / n]) / 2;
            dx[i] = (REAL)(c->in_adds[0] ? dx[i] + g : g);
        }
    }
}
#endif
