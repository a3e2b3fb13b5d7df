/* The determinant of matrices [.., N, N]. Keras: ops.det. Its gradient is the determinant times the
 * inverse, transposed; of a matrix without an inverse it is no number. */
#ifndef REAL
#include "ops/matrices.h"

static keel_status infer(keel_node *n)
{
    KEEL_TRY(keel_infer_check(n, 1, 0, 0));
    KEEL_TRY(keel_matrices_check(n));
    keel_shape out = n->in[0].shape;
    out.rank -= 2;
    n->scratch = keel_matrices_scratch(keel_matrix_size(n));
    return keel_infer_out(n, &out);
}

#define REAL_FILE "ops/determinant.c"
#include "ops/real.h"

const keel_op keel_op_determinant = {
    .name = "determinant",
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN,
    .cases =
        (const keel_case[]){ { "3,3", NULL, NULL }, { "2,2,2", NULL, NULL }, { NULL, NULL, NULL } },
};
#else
/* Of the matrix at x; leaves its decomposition. */
static double REAL_(determinant)(const REAL *x, int64_t n, double *lu, double *order)
{
    for (int64_t i = 0; i < n * n; i++) lu[i] = (double)x[i];
    double product = keel_lu(lu, n, order);
    for (int64_t i = 0; i < n; i++) product *= lu[i * n + i];
    return product;
}

static void REAL_(forward)(const keel_call *c)
{
    const int64_t n = keel_matrix_size(c->node);
    const int64_t count = c->rows * (keel_row_count(&c->node->in[0]) / (n * n));
    double *lu = c->scratch;
    const REAL *x = c->in[0];
    REAL *y = c->out[0];
    for (int64_t m = 0; m < count; m++)
        y[m] = (REAL)REAL_(determinant)(x + m * n * n, n, lu, lu + n * n);
}

static void REAL_(backward)(const keel_call *c)
{
    const int64_t n = keel_matrix_size(c->node);
    const int64_t count = c->rows * (keel_row_count(&c->node->in[0]) / (n * n));
    double *lu = c->scratch, *inverse = lu + n * n, *order = inverse + n * n, *column = order + n;
    const REAL *x = c->in[0], *dy = c->out_grad[0];
    REAL *dx = c->in_grad[0];
    for (int64_t m = 0; dx && m < count; m++, x += n * n, dx += n * n) {
        const double d = (double)dy[m] * REAL_(determinant)(x, n, lu, order);
        keel_lu_inverse(lu, order, n, column, inverse);
        for (int64_t i = 0; i < n * n; i++) {
            const double g = d * inverse[i % n * n + i / n];
            dx[i] = (REAL)(c->in_adds[0] ? dx[i] + g : g);
        }
    }
}
#endif
