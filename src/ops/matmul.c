/* Matrix products within a row: [.., M, K] and [.., K, N] give [.., M, N]; the dims before
 * are equal. Keras: ops.matmul. */
#ifndef REAL
#include "ops/derive.h"
#include "ops/infer.h"

static keel_status infer(keel_node *n)
{
    char a_text[96], b_text[96];
    KEEL_TRY(keel_infer_check(n, 2, 0, 0));
    const keel_shape *a = &n->in[0].shape, *b = &n->in[1].shape;
    const int r = a->rank;
    bool fits = r >= 2 && b->rank == r && a->dim[r - 1] == b->dim[r - 2];
    for (int d = 0; fits && d < r - 2; d++) fits = a->dim[d] == b->dim[d];
    if (fits) {
        keel_shape out = *a;
        out.dim[r - 1] = b->dim[r - 1];
        return keel_infer_out(n, &out);
    }
    keel_shape_text(a_text, a);
    keel_shape_text(b_text, b);
    return keel_fail(KEEL_ESHAPE, "matmul: rows of %s and %s cannot be multiplied", a_text, b_text);
}

typedef struct dims {
    int64_t matrices, m, k, n;
} dims;

static dims dims_of(const keel_call *c)
{
    const keel_shape *a = &c->node->in[0].shape, *b = &c->node->in[1].shape;
    const int64_t m = a->dim[a->rank - 2], k = a->dim[a->rank - 1];
    return (dims){ c->rows * (keel_row_count(&c->node->in[0]) / (m * k)), m, k,
                   b->dim[b->rank - 1] };
}

static double flops(const keel_node *n)
{
    const keel_shape *a = &n->in[0].shape;
    return 2.0 * (double)keel_row_count(&n->out[0]) * (double)a->dim[a->rank - 1];
}

static double backward_flops(const keel_node *n) /* both factors have a gradient */
{
    return 2 * flops(n);
}

/* Of several matrices, each is a place. Of one, each row of the left factor. */
static keel_going goes(const keel_node *n, int k)
{
    return k == 0 || n->in[k].shape.rank > 2 ? KEEL_GOES_ALONG : KEEL_GOES_WHOLE;
}

#define REAL_FILE "ops/matmul.c"
#include "ops/real.h"

static keel_status turn(const keel_derivation *d, int x, int *out)
{
    const int rank = d->node->in[0].shape.rank;
    keel_permute_args args = { 0 };
    for (int i = 0; i < rank; i++) args.from[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
    return keel_derive_one(d, &keel_op_permute, &args, x, out);
}

/* dy b^T, a^T dy */
static keel_status derive(const keel_derivation *d, int k, int *out)
{
    int other;
    KEEL_TRY(turn(d, d->in[1 - k], &other));
    return k == 0 ? keel_derive_two(d, &keel_op_matmul, d->grad, other, out)
                  : keel_derive_two(d, &keel_op_matmul, other, d->grad, out);
}

const keel_op keel_op_matmul = {
    .name = "matmul",
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .derive = derive,
    .backward_reads = KEEL_READS_IN,
    .goes = goes,
    .columns = true,
    .flops = flops,
    .backward_flops = backward_flops,
    .cases = (const keel_case[]){ { "3,4|4,2", NULL, NULL },
                                  { "2,3,4|2,4,5", NULL, NULL },
                                  { "1,7|7,1", NULL, NULL },
                                  { NULL, NULL, NULL } },
};
#else
static void REAL_(forward)(const keel_call *c)
{
    const dims d = dims_of(c);
    for (int64_t t = 0; t < d.matrices; t++) {
        const REAL *a = (const REAL *)c->in[0] + t * d.m * d.k;
        const REAL *b = (const REAL *)c->in[1] + t * d.k * d.n;
        REAL *y = (REAL *)c->out[0] + t * d.m * d.n;
        for (int64_t i = 0; i < d.m; i++)
            for (int64_t j = 0; j < d.n; j++) {
                double sum = 0;
                for (int64_t k = 0; k < d.k; k++) sum += (double)a[i * d.k + k] * b[k * d.n + j];
                y[i * d.n + j] = (REAL)sum;
            }
    }
}

static void REAL_(backward)(const keel_call *c)
{
    const dims d = dims_of(c);
    const keel_columns some = c->columns.count > 0 ? c->columns : (keel_columns){ 0, d.n };
    for (int64_t t = 0; t < d.matrices; t++) {
        const REAL *a = (const REAL *)c->in[0] + t * d.m * d.k;
        const REAL *b = (const REAL *)c->in[1] + t * d.k * d.n;
        const REAL *dy = (const REAL *)c->out_grad[0] + t * d.m * d.n;
        REAL *da = c->in_grad[0] ? (REAL *)c->in_grad[0] + t * d.m * d.k : NULL;
        REAL *db = c->in_grad[1] ? (REAL *)c->in_grad[1] + t * d.k * d.n : NULL;
        for (int64_t i = 0; da && i < d.m * d.k; i++) {
            double sum = 0;
            for (int64_t j = 0; j < d.n; j++)
                sum += (double)dy[i / d.k * d.n + j] * b[i % d.k * d.n + j];
            da[i] = (REAL)(c->in_adds[0] ? da[i] + sum : sum);
        }
        for (int64_t i = 0; db && i < d.k * some.count; i++) {
            const int64_t k = i / some.count, column = some.first + i % some.count;
            REAL *to = db + k * d.n + column;
            double sum = 0;
            for (int64_t j = 0; j < d.m; j++) sum += (double)a[j * d.k + k] * dy[j * d.n + column];
            *to = (REAL)(c->in_adds[1] ? *to + sum : sum);
        }
    }
}
#endif
