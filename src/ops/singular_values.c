/* The singular values of matrices [.., M, N], from the largest on: [.., min(M, N)]. Keras: ops.svd
 * with compute_uv=False. The gradient of A is U dS V^T. */
#ifndef REAL
#include "ops/singular_values.h"

static keel_status infer(keel_node *n)
{
    KEEL_TRY(keel_infer_check(n, 1, 0, 0));
    keel_shape out = n->in[0].shape;
    if (out.rank < 2) return keel_fail(KEEL_ESHAPE, "singular_values: rows must be matrices");
    const keel_tall t = keel_tall_of(&n->in[0], 1);
    out.dim[--out.rank - 1] = t.n;
    n->scratch = keel_tall_scratch(&t);
    return keel_infer_out(n, &out);
}

/* order[j]: the column with the j-th largest value; equal ones in their order. */
static void sort(const double *value, int64_t n, double *order)
{
    for (int64_t k = 0; k < n; k++) {
        int64_t j = k;
        for (; j > 0 && value[(int64_t)order[j - 1]] < value[k]; j--) order[j] = order[j - 1];
        order[j] = (double)k;
    }
}

#define REAL_FILE "ops/singular_values.c"
#include "ops/real.h"

const keel_op keel_op_singular_values = {
    .name = "singular_values",
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN,
    .cases = (const keel_case[]){ { "4,3", NULL, NULL },
                                  { "2,2,3", NULL, NULL },
                                  { "3,3", NULL, NULL },
                                  { NULL, NULL, NULL } },
};
#else
typedef struct REAL_(parts) {
    double *a, *v, *value, *order;
} REAL_(parts);

static REAL_(parts) REAL_(decompose)(const keel_call *c, const keel_tall *t, const REAL *x)
{
    REAL_(parts) p = { .a = c->scratch };
    p.v = p.a + t->m * t->n;
    p.value = p.v + t->n * t->n;
    p.order = p.value + t->n;
    for (int64_t i = 0; i < t->m * t->n; i++)
        p.a[i] = (double)x[keel_tall_at(t, i / t->n, i % t->n)];
    keel_orthogonalise(p.a, p.v, t->m, t->n);
    for (int64_t k = 0; k < t->n; k++) p.value[k] = keel_column_length(p.a, t->m, t->n, k);
    sort(p.value, t->n, p.order);
    return p;
}

static void REAL_(forward)(const keel_call *c)
{
    const keel_tall t = keel_tall_of(&c->node->in[0], c->rows);
    REAL *y = c->out[0];
    for (int64_t m = 0; m < t.matrices; m++, y += t.n) {
        const REAL_(parts) p = REAL_(decompose)(c, &t, (const REAL *)c->in[0] + m * t.m * t.n);
        for (int64_t k = 0; k < t.n; k++) y[k] = (REAL)p.value[(int64_t)p.order[k]];
    }
}

static void REAL_(backward)(const keel_call *c)
{
    const keel_tall t = keel_tall_of(&c->node->in[0], c->rows);
    const REAL *dy = c->out_grad[0];
    REAL *dx = c->in_grad[0];
    for (int64_t m = 0; dx && m < t.matrices; m++, dy += t.n, dx += t.m * t.n) {
        const REAL_(parts) p = REAL_(decompose)(c, &t, (const REAL *)c->in[0] + m * t.m * t.n);
        for (int64_t i = 0; i < t.m * t.n; i++) {
            double g = 0;
            for (int64_t k = 0; k < t.n; k++) {
                const int64_t at = (int64_t)p.order[k];
                if (p.value[at] > 0)
                    g += (double)dy[k] * p.a[i / t.n * t.n + at] / p.value[at] *
                         p.v[i % t.n * t.n + at];
            }
            REAL *to = dx + keel_tall_at(&t, i / t.n, i % t.n);
            *to = (REAL)(c->in_adds[0] ? *to + g : g);
        }
    }
}
#endif
