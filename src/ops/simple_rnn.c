/* A plain recurrent layer over all steps of a row, after the product with its inputs: see
 * ops/recurrent.h. h' = f(z + h recurrent_kernel). */
#ifndef REAL
#include "ops/recurrent.h"
#include <string.h>

static keel_status infer(keel_node *n)
{
    return keel_recurrent_infer(n, &keel_cell_simple_rnn);
}

#define REAL_FILE "ops/simple_rnn.c"
#include "ops/real.h"

const keel_op keel_op_simple_rnn = {
    .name = "simple_rnn",
    KEEL_RECURRENT_OP,
    .cases =
        (const keel_case[]){ { "3,2", "2,2", NULL },
                             { "4,20|4", "20,20", "masked sequences" },
                             { "4,3|4|3|1,3", "3,3", "masked stated dropped states backwards" },
                             { "4,3|4", "3,3", "masked zeros sequences by_relu" },
                             { "3,5", "5,5", "by_silu sequences" },
                             { NULL, NULL, NULL } },
};
#else
#include "ops/recurrent_real.h"

static void REAL_(one_forward)(REAL_(step) * t)
{
    const keel_recurrent_args *a = t->c->node->args;
    REAL_(product)(t, t->before, 0, 1, t->pre);
    REAL_(gate)(t, &a->activation, t->pre, t->of);
    memcpy(t->h, t->of, (size_t)t->s.units * sizeof(REAL));
}

static void REAL_(one_backward)(REAL_(step) * t)
{
    const keel_recurrent_args *a = t->c->node->args;
    const size_t bytes = (size_t)t->s.units * sizeof(REAL);
    REAL_(slope)(t, &a->activation, t->pre, t->of, t->dh);
    memcpy(t->of, t->dh, bytes);
    memset(t->dh, 0, bytes);
    REAL_(product_back)(t, t->before, t->of, 0, 1, t->dh);
    t->dz = t->of;
}

static void REAL_(forward)(const keel_call *c)
{
    REAL_(run_forward)(c, &keel_cell_simple_rnn, REAL_(one_forward));
}

static void REAL_(backward)(const keel_call *c)
{
    REAL_(run_backward)(c, &keel_cell_simple_rnn, REAL_(one_backward));
}

static void REAL_(weights)(const keel_call *c)
{
    if (c->weight_grad[0]) REAL_(kernel_gradient)(c, &keel_cell_simple_rnn, 0, -1);
}
#endif
