/* The elements of matrices [.., M, N] on the diagonals low to high (column less row); 0 elsewhere.
 * Keras: ops.tril, ops.triu. */
#ifndef REAL
#include "ops/band.h"
#include "ops/cases.h"
#include "ops/infer.h"

static keel_status infer(keel_node *n)
{
    KEEL_TRY(keel_infer_like(n));
    return n->in[0].shape.rank >= 2
               ? KEEL_OK
               : keel_fail(KEEL_ESHAPE, "band: rows must be matrices, with two dims or more");
}

static void args_for_case(void *args, const char *text)
{
    keel_band_args *a = args;
    keel_case_ints(text, "low", &a->low, 1);
    keel_case_ints(text, "high", &a->high, 1);
}

#define REAL_FILE "ops/band.c"
#include "ops/real.h"

const keel_op keel_op_band = {
    .name = "band",
    .args_size = sizeof(keel_band_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = 0,
    .cases = (const keel_case[]){ { "4,5", NULL, "low -9 high 0" },
                                  { "2,4,3", NULL, "low -1 high 1" },
                                  { "3,3", NULL, "low 1 high 9" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
static bool REAL_(inside)(const keel_node *node, int64_t i)
{
    const keel_band_args *a = node->args;
    const keel_shape *s = &node->in[0].shape;
    const int64_t n = s->dim[s->rank - 1], off = i % n - i / n % s->dim[s->rank - 2];
    return off >= a->low && off <= a->high;
}

static void REAL_(forward)(const keel_call *c)
{
    const int64_t count = c->rows * keel_row_count(&c->node->in[0]);
    const REAL *x = c->in[0];
    REAL *y = c->out[0];
    for (int64_t i = 0; i < count; i++) y[i] = REAL_(inside)(c->node, i) ? x[i] : 0;
}

static void REAL_(backward)(const keel_call *c)
{
    const int64_t count = c->rows * keel_row_count(&c->node->in[0]);
    const REAL *dy = c->out_grad[0];
    REAL *dx = c->in_grad[0];
    for (int64_t i = 0; dx && i < count; i++) {
        const REAL g = REAL_(inside)(c->node, i) ? dy[i] : 0;
        dx[i] = c->in_adds[0] ? dx[i] + g : g;
    }
}
#endif
