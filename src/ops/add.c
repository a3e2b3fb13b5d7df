/* The sum of two or more inputs of one shape. */
#ifndef REAL
#include "ops/goes.h"
#include "ops/infer.h"
#include "ops/derive.h"

static keel_status infer(keel_node *n)
{
    char first[96], other[96];
    KEEL_TRY(keel_infer_check(n, -1, 0, 0));
    for (int i = 1; i < n->n_in; i++)
        if (!keel_shape_equal(&n->in[i].shape, &n->in[0].shape)) {
            keel_shape_text(first, &n->in[0].shape);
            keel_shape_text(other, &n->in[i].shape);
            return keel_fail(KEEL_ESHAPE,
                             "add: input 0 is %s and input %d is %s; they must be equal", first, i,
                             other);
        }
    return keel_infer_out(n, &n->in[0].shape);
}

#define REAL_FILE "ops/add.c"
#include "ops/real.h"

static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    *out = d->grad;
    return KEEL_OK;
}

const keel_op keel_op_add = {
    .name = "add",
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .derive = derive,
    .goes = keel_goes_like,
    .inplace = true,
    .cases = (const keel_case[]){ { "4,5|4,5", NULL, NULL },
                                  { "3|3|3", NULL, NULL },
                                  { "6", NULL, NULL },
                                  { NULL, NULL, NULL } },
};
#else
static void REAL_(forward)(const keel_call *c)
{
    const int64_t count = c->rows * keel_row_count(&c->node->out[0]);
    const int n = c->node->n_in;
    REAL *y = c->out[0];
    for (int64_t i = 0; i < count; i++) {
        REAL sum = ((const REAL *)c->in[0])[i];
        for (int k = 1; k < n; k++) sum += ((const REAL *)c->in[k])[i];
        y[i] = sum;
    }
}

static void REAL_(backward)(const keel_call *c)
{
    const int64_t count = c->rows * keel_row_count(&c->node->out[0]);
    const REAL *dy = c->out_grad[0];
    for (int k = c->node->n_in - 1; k >= 0;
         k--) { /* input 0 last, because its gradient may share memory with dy */
        REAL *dx = c->in_grad[k];
        if (!dx) continue;
        if (c->in_adds[k])
            for (int64_t i = 0; i < count; i++) dx[i] += dy[i];
        else if (dx != dy)
            for (int64_t i = 0; i < count; i++) dx[i] = dy[i];
    }
}
#endif
