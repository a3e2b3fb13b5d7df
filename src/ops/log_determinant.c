/* The sign of the determinant of matrices [.., N, N], and the logarithm of its size: [.., 2]. No
 * gradient flows through the sign. Keras: ops.slogdet.
 *
 * The gradient of the logarithm is the inverse, transposed. */
#ifndef REAL
#include "ops/matrices.h"

static keel_status infer(keel_node *n)
{
    KEEL_TRY(keel_infer_check(n, 1, 0, 0));
    KEEL_TRY(keel_matrices_check(n));
    keel_shape out = n->in[0].shape;
    out.dim[--out.rank - 1] = 2;
    n->scratch = keel_matrices_scratch(keel_matrix_size(n));
    return keel_infer_out(n, &out);
}

#define REAL_FILE "ops/log_determinant.c"
#include "ops/real.h"

const keel_op keel_op_log_determinant = {
    .name = "log_determinant",
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN,
    .cases =
        (const keel_case[]){ { "3,3", NULL, NULL }, { "2,2,2", NULL, NULL }, { NULL, NULL, NULL } },
};
#else
static void REAL_(forward)(const keel_call *c)
{
    const int64_t n = keel_matrix_size(c->node);
    const int64_t count = c->rows * (keel_row_count(&c->node->in[0]) / (n * n));
    double *lu = c->scratch, *order = lu + n * n;
    const REAL *x = c->in[0];
    REAL *y = c->out[0];
    for (int64_t m = 0; m < count; m++, x += n * n, y += 2) {
        double log_size = 0;
        for (int64_t i = 0; i < n * n; i++) lu[i] = (double)x[i];
        double sign = keel_lu(lu, n, order);
        for (int64_t i = 0; i < n; i++) {
            const double d = lu[i * n + i];
            sign = d > 0 ? sign : d < 0 ? -sign : d * 0;
            log_size += log(fabs(d));
        }
        y[0] = (REAL)sign;
        y[1] = (REAL)log_size;
    }
}

static void REAL_(backward)(const keel_call *c)
{
    const int64_t n = keel_matrix_size(c->node);
    const int64_t count = c->rows * (keel_row_count(&c->node->in[0]) / (n * n));
    double *lu = c->scratch, *inverse = lu + n * n, *order = inverse + n * n, *column = order + n;
    const REAL *x = c->in[0], *dy = c->out_grad[0];
    REAL *dx = c->in_grad[0];
    for (int64_t m = 0; dx && m < count; m++, x += n * n, dx += n * n, dy += 2) {
        for (int64_t i = 0; i < n * n; i++) lu[i] = (double)x[i];
        keel_lu(lu, n, order);
        keel_lu_inverse(lu, order, n, column, inverse);
        for (int64_t i = 0; i < n * n; i++) {
            const double g = (double)dy[1] * inverse[i % n * n + i / n];
            dx[i] = (REAL)(c->in_adds[0] ? dx[i] + g : g);
        }
    }
}
#endif
