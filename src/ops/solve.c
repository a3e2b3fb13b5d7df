/* X of A X = B, for matrices [.., N, N] and [.., N, K]. Keras: ops.solve. The gradient of B is that
 * of X times the inverse of A, transposed; the gradient of A is -dB X^T. */
#ifndef REAL
#include "ops/matrices.h"

static keel_status infer(keel_node *n)
{
    KEEL_TRY(keel_infer_check(n, 2, 0, 0));
    KEEL_TRY(keel_matrices_check(n));
    const keel_shape *a = &n->in[0].shape, *b = &n->in[1].shape;
    bool fits = b->rank == a->rank;
    for (int d = 0; fits && d < a->rank - 1; d++) fits = a->dim[d] == b->dim[d];
    if (!fits) return keel_fail(KEEL_ESHAPE, "solve: rows of both must be matrices that fit");
    n->scratch = keel_matrices_scratch(keel_matrix_size(n));
    return keel_infer_out(n, b);
}

#define REAL_FILE "ops/solve.c"
#include "ops/real.h"

const keel_op keel_op_solve = {
    .name = "solve",
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN | KEEL_READS_OUT,
    .cases = (const keel_case[]){ { "3,3|3,2", NULL, "definite" },
                                  { "2,2,2|2,2,1", NULL, "definite" },
                                  { NULL, NULL, NULL } },
};
#else
static void REAL_(forward)(const keel_call *c)
{
    const int64_t n = keel_matrix_size(c->node), columns = keel_row_count(&c->node->in[1]) * n * n /
                                                           keel_row_count(&c->node->in[0]) / n;
    const int64_t count = c->rows * (keel_row_count(&c->node->in[0]) / (n * n));
    double *lu = c->scratch, *order = lu + n * n, *b = order + n, *x = b + n;
    for (int64_t m = 0; m < count; m++) {
        const REAL *from = (const REAL *)c->in[1] + m * n * columns;
        REAL *y = (REAL *)c->out[0] + m * n * columns;
        for (int64_t i = 0; i < n * n; i++) lu[i] = (double)((const REAL *)c->in[0])[m * n * n + i];
        keel_lu(lu, n, order);
        for (int64_t j = 0; j < columns; j++) {
            for (int64_t i = 0; i < n; i++) b[i] = (double)from[i * columns + j];
            keel_lu_solve(lu, order, n, b, 1, x);
            for (int64_t i = 0; i < n; i++) y[i * columns + j] = (REAL)x[i];
        }
    }
}

static void REAL_(backward)(const keel_call *c)
{
    const int64_t n = keel_matrix_size(c->node), columns = keel_row_count(&c->node->in[1]) * n * n /
                                                           keel_row_count(&c->node->in[0]) / n;
    const int64_t count = c->rows * (keel_row_count(&c->node->in[0]) / (n * n));
    double *lu = c->scratch, *da = lu + n * n, *order = da + n * n, *g = order + n, *db = g + n;
    for (int64_t m = 0; m < count; m++) {
        const REAL *a = (const REAL *)c->in[0] + m * n * n;
        const REAL *y = (const REAL *)c->out[0] + m * n * columns;
        const REAL *dy = (const REAL *)c->out_grad[0] + m * n * columns;
        REAL *of_a = c->in_grad[0] ? (REAL *)c->in_grad[0] + m * n * n : NULL;
        REAL *of_b = c->in_grad[1] ? (REAL *)c->in_grad[1] + m * n * columns : NULL;
        for (int64_t i = 0; i < n * n; i++) {
            lu[i] = (double)a[i % n * n + i / n]; /* A transposed */
            da[i] = 0;
        }
        keel_lu(lu, n, order);
        for (int64_t j = 0; j < columns; j++) {
            for (int64_t i = 0; i < n; i++) g[i] = (double)dy[i * columns + j];
            keel_lu_solve(lu, order, n, g, 1, db);
            for (int64_t i = 0; i < n * n; i++) da[i] -= db[i / n] * (double)y[i % n * columns + j];
            for (int64_t i = 0; of_b && i < n; i++) {
                REAL *to = of_b + i * columns + j;
                *to = (REAL)(c->in_adds[1] ? *to + db[i] : db[i]);
            }
        }
        for (int64_t i = 0; of_a && i < n * n; i++)
            of_a[i] = (REAL)(c->in_adds[0] ? of_a[i] + da[i] : da[i]);
    }
}
#endif
