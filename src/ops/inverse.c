/* The inverse of matrices [.., N, N]. Keras: ops.inv. With Y the inverse, the gradient of x is
 * -Y^T dY Y^T. */
#ifndef REAL
#include "ops/matrices.h"

#define REAL_FILE "ops/inverse.c"
#include "ops/real.h"

const keel_op keel_op_inverse = {
    .name = "inverse",
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
    double *lu = c->scratch, *inverse = lu + n * n, *order = inverse + n * n, *column = order + n;
    const REAL *x = c->in[0];
    REAL *y = c->out[0];
    for (int64_t m = 0; m < count; m++, x += n * n, y += n * n) {
        for (int64_t i = 0; i < n * n; i++) lu[i] = (double)x[i];
        keel_lu(lu, n, order);
        keel_lu_inverse(lu, order, n, column, inverse);
        for (int64_t i = 0; i < n * n; i++) y[i] = (REAL)inverse[i];
    }
}

static void REAL_(backward)(const keel_call *c)
{
    const int64_t n = keel_matrix_size(c->node);
    const int64_t count = c->rows * (keel_row_count(&c->node->in[0]) / (n * n));
    double *part = c->scratch; /* dY Y^T */
    const REAL *y = c->out[0], *dy = c->out_grad[0];
    REAL *dx = c->in_grad[0];
    for (int64_t m = 0; dx && m < count; m++, y += n * n, dy += n * n, dx += n * n) {
        for (int64_t i = 0; i < n * n; i++) {
            part[i] = 0;
            for (int64_t k = 0; k < n; k++)
                part[i] += (double)dy[i / n * n + k] * (double)y[i % n * n + k];
        }
        for (int64_t i = 0; i < n * n; i++) {
            double g = 0;
            for (int64_t k = 0; k < n; k++) g -= (double)y[k * n + i / n] * part[k * n + i % n];
            dx[i] = (REAL)(c->in_adds[0] ? dx[i] + g : g);
        }
    }
}
#endif
