/* The inverse of Moore and Penrose of matrices [.., M, N]: [.., N, M]. Keras: ops.pinv.
 *
 * With Y the inverse and g its gradient, that of A is (Golub, Pereyra 1973)
 *
 *     -Y^T g Y^T + (1 - A Y) g^T Y Y^T + Y^T Y g^T (1 - Y A) */
#ifndef REAL
#include "ops/pseudo_inverse.h"
#include "ops/cases.h"
#include "ops/singular_values.h"

static keel_status infer(keel_node *n)
{
    KEEL_TRY(keel_infer_check(n, 1, 0, 0));
    keel_shape out = n->in[0].shape;
    const int r = out.rank;
    if (r < 2) return keel_fail(KEEL_ESHAPE, "pseudo_inverse: rows must be matrices");
    const keel_tall t = keel_tall_of(&n->in[0], 1);
    out.dim[r - 2] = t.columns;
    out.dim[r - 1] = t.rows;
    n->scratch = keel_tall_scratch(&t) + 5 * t.m * t.m * (int64_t)sizeof(double);
    return keel_infer_out(n, &out);
}

static void args_for_case(void *args, const char *text)
{
    ((keel_pseudo_inverse_args *)args)->least = 1e-6;
    keel_case_number(text, "least", &((keel_pseudo_inverse_args *)args)->least);
}

/* A matrix and how to walk it: element (i, k) is at i down + k across. */
typedef struct view {
    const double *at;
    int64_t rows, columns, down, across;
} view;

static view whole(const double *at, int64_t rows, int64_t columns)
{
    return (view){ at, rows, columns, columns, 1 };
}

static view turned(view a)
{
    return (view){ a.at, a.columns, a.rows, a.across, a.down };
}

/* to = a b, [rows of a, columns of b]. */
static view times(view a, view b, double *to)
{
    for (int64_t i = 0; i < a.rows; i++)
        for (int64_t j = 0; j < b.columns; j++) {
            double sum = 0;
            for (int64_t k = 0; k < a.columns; k++)
                sum += a.at[i * a.down + k * a.across] * b.at[k * b.down + j * b.across];
            to[i * b.columns + j] = sum;
        }
    return whole(to, a.rows, b.columns);
}

#define REAL_FILE "ops/pseudo_inverse.c"
#include "ops/real.h"

const keel_op keel_op_pseudo_inverse = {
    .name = "pseudo_inverse",
    .args_size = sizeof(keel_pseudo_inverse_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN | KEEL_READS_OUT,
    .cases =
        (const keel_case[]){ { "4,3", NULL, NULL }, { "2,2,3", NULL, NULL }, { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
static void REAL_(forward)(const keel_call *c)
{
    const keel_tall t = keel_tall_of(&c->node->in[0], c->rows);
    double *a = c->scratch, *v = a + t.m * t.n, *value = v + t.n * t.n;
    for (int64_t m = 0; m < t.matrices; m++) {
        const REAL *x = (const REAL *)c->in[0] + m * t.m * t.n;
        REAL *y = (REAL *)c->out[0] + m * t.m * t.n;
        double most = 0;
        for (int64_t i = 0; i < t.m * t.n; i++)
            a[i] = (double)x[keel_tall_at(&t, i / t.n, i % t.n)];
        keel_orthogonalise(a, v, t.m, t.n);
        for (int64_t k = 0; k < t.n; k++) {
            value[k] = keel_column_length(a, t.m, t.n, k);
            most = fmax(most, value[k]);
        }
        /* of the tall matrix it is [n, m] = V S^-1 U^T, where a has U S */
        for (int64_t i = 0; i < t.m * t.n; i++) {
            const int64_t row = i / t.n, column = i % t.n;
            double sum = 0;
            for (int64_t k = 0; k < t.n; k++)
                if (value[k] > ((const keel_pseudo_inverse_args *)c->node->args)->least * most)
                    sum += v[column * t.n + k] * a[row * t.n + k] / (value[k] * value[k]);
            y[t.turned ? row * t.rows + column : column * t.rows + row] = (REAL)sum;
        }
    }
}

static void REAL_(load)(double *to, const REAL *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++) to[i] = (double)x[i];
}

static void REAL_(backward)(const keel_call *c)
{
    const keel_tall t = keel_tall_of(&c->node->in[0], c->rows);
    const int64_t count = t.rows * t.columns, square = t.m * t.m;
    double *a = c->scratch, *y = a + count, *g = y + count, *first = g + count;
    double *second = first + square, *third = second + square;
    REAL *dx = c->in_grad[0];
    for (int64_t m = 0; dx && m < t.matrices; m++, dx += count) {
        REAL_(load)(a, (const REAL *)c->in[0] + m * count, count);
        REAL_(load)(y, (const REAL *)c->out[0] + m * count, count);
        REAL_(load)(g, (const REAL *)c->out_grad[0] + m * count, count);
        const view A = whole(a, t.rows, t.columns), Y = whole(y, t.columns, t.rows);
        const view G = whole(g, t.columns, t.rows);
        double *sum = third + square;               /* what is added up */
        const view yg = times(turned(Y), G, first); /* [M, M] */
        times(yg, turned(Y), sum);
        for (int64_t i = 0; i < count; i++) sum[i] = -sum[i];
        const view gy = times(turned(G), Y, first); /* [M, M] */
        const view gyy = times(gy, turned(Y), second);
        for (int64_t i = 0; i < count; i++) sum[i] += second[i];
        const view ygyy = times(Y, gyy, third); /* [N, N] */
        times(A, ygyy, second);
        for (int64_t i = 0; i < count; i++) sum[i] -= second[i];
        const view yy = times(turned(Y), Y, first); /* [M, M] */
        const view yyg = times(yy, turned(G), second);
        for (int64_t i = 0; i < count; i++) sum[i] += second[i];
        const view yygy = times(yyg, Y, third); /* [M, M] */
        times(yygy, A, second);
        for (int64_t i = 0; i < count; i++) {
            const double d = sum[i] - second[i];
            dx[i] = (REAL)(c->in_adds[0] ? dx[i] + d : d);
        }
    }
}
#endif
