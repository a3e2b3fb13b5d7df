/* Products of the matrices within rows, as attention with scores has them.
 *
 *     y [M, N] = a [M, K] b [K, N];  da = dy bt;  db = at dy
 *
 * All three are products of p, whose elements are read one by one, wherever they lie, and q, whose
 * rows are vectors (_product.h); bt is made in scratch. */
#include "ops/x86/_product.h"

KEEL_USES_OP(matmul);

static int64_t dim_of(const keel_spec *s, int from_end)
{
    return s->shape.dim[s->shape.rank - from_end];
}

static keel_status prepare(keel_prepare *p)
{
    const keel_spec *b = &p->node->in[1];
    KEEL_TRY(vector_prepare(p));
    if (p->pass > KEEL_BACKWARD) return KEEL_EUNSUP;
    if (p->pass == KEEL_BACKWARD) p->scratch = dim_of(b, 1) * dim_of(b, 2) * (int64_t)sizeof(float);
    return KEEL_OK;
}

typedef struct sizes {
    int64_t matrices, m, k, n;
} sizes;

static sizes sizes_of(const keel_call *c)
{
    const keel_spec *a = &c->node->in[0], *b = &c->node->in[1];
    const int64_t m = dim_of(a, 2), k = dim_of(a, 1);
    return (sizes){ c->rows * (keel_row_count(a) / (m * k)), m, k, dim_of(b, 1) };
}

static void forward(const keel_call *c)
{
    const sizes s = sizes_of(c);
    for (int64_t t = 0; t < s.matrices; t++)
        multiply(&(product){ .p = (const float *)c->in[0] + t * s.m * s.k,
                             .q = (const float *)c->in[1] + t * s.k * s.n,
                             .p_row = s.k,
                             .p_step = 1,
                             .q_row = s.n,
                             .inner = s.k,
                             .rows = s.m,
                             .columns = s.n,
                             .out = (float *)c->out[0] + t * s.m * s.n,
                             .out_row = s.n });
}

static void backward(const keel_call *c)
{
    const sizes s = sizes_of(c);
    float *const bt = c->scratch;
    for (int64_t t = 0; t < s.matrices; t++) {
        const float *a = (const float *)c->in[0] + t * s.m * s.k;
        const float *b = (const float *)c->in[1] + t * s.k * s.n;
        const float *dy = (const float *)c->out_grad[0] + t * s.m * s.n;
        if (c->in_grad[0]) {
            for (int64_t k = 0; k < s.k; k++)
                for (int64_t j = 0; j < s.n; j++) bt[j * s.k + k] = b[k * s.n + j];
            multiply(&(product){ .p = dy,
                                 .q = bt,
                                 .p_row = s.n,
                                 .p_step = 1,
                                 .q_row = s.k,
                                 .inner = s.n,
                                 .rows = s.m,
                                 .columns = s.k,
                                 .out = (float *)c->in_grad[0] + t * s.m * s.k,
                                 .out_row = s.k,
                                 .adds = c->in_adds[0] });
        }
        if (c->in_grad[1])
            multiply(&(product){ .p = a,
                                 .q = dy,
                                 .p_row = 1,
                                 .p_step = s.k,
                                 .q_row = s.n,
                                 .inner = s.m,
                                 .rows = s.k,
                                 .columns = s.n,
                                 .out = (float *)c->in_grad[1] + t * s.k * s.n,
                                 .out_row = s.n,
                                 .adds = c->in_adds[1] });
    }
}

const keel_kernel VECTOR_KERNEL(matmul) = {
    .op = &keel_op_matmul,
    .name = VECTOR_NAME,
    .priority = VECTOR_PRIORITY(VECTOR),
    .needs = VECTOR_LEVEL,
    .prepare = prepare,
    .run = { [KEEL_FORWARD] = forward, [KEEL_BACKWARD] = backward },
};
