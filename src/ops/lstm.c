/* LSTM over all steps of a row, after the product with its inputs: see ops/recurrent.h. z has the
 * gates i, f, g, o side by side:
 *
 *     c' = f c + i g        h' = o tanh(c')
 *
 * tanh, of g too, is the layer's activation; i, f and o go through the recurrent one. */
#ifndef REAL
#include "ops/recurrent.h"
#include <string.h>

static keel_status infer(keel_node *n)
{
    return keel_recurrent_infer(n, &keel_cell_lstm);
}

#define REAL_FILE "ops/lstm.c"
#include "ops/real.h"

const keel_op keel_op_lstm = {
    .name = "lstm",
    KEEL_RECURRENT_OP,
    .cases =
        (const keel_case[]){ { "3,8", "2,8", NULL },
                             { "4,20|4", "5,20", "masked sequences" },
                             { "4,12|3|3", "3,12", "stated sequences states" },
                             { "5,12|5|3|3", "3,12", "masked stated states backwards" },
                             { "3,12|3|4,3", "3,12", "masked dropped zeros sequences backwards" },
                             { "3,12", "3,12", "by_silu gates_hard_sigmoid sequences" },
                             { "2,12", "3,12", "by_linear gates_softmax" },
                             { "3,68|4,17", "17,68", "dropped by_relu gates_hard_sigmoid" },
                             { "3,36", "9,36", "by_linear sequences" },
                             { NULL, NULL, NULL } },
};
#else
#include "ops/recurrent_real.h"

static void REAL_(one_forward)(REAL_(step) * t)
{
    const keel_recurrent_args *a = t->c->node->args;
    const int64_t u = t->s.units;
    REAL *i = t->of, *f = i + u, *g = i + 2 * u, *o = i + 3 * u, *squashed = t->room;
    REAL_(product)(t, t->before, 0, 4, t->pre);
    REAL_(gate)(t, &a->recurrent, t->pre, i);
    REAL_(gate)(t, &a->recurrent, t->pre + u, f);
    REAL_(gate)(t, &a->activation, t->pre + 2 * u, g);
    REAL_(gate)(t, &a->recurrent, t->pre + 3 * u, o);
    for (int64_t k = 0; k < u; k++) t->cell[k] = f[k] * t->carry[k] + i[k] * g[k];
    REAL_(gate)(t, &a->activation, t->cell, squashed);
    for (int64_t k = 0; k < u; k++) t->h[k] = o[k] * squashed[k];
}

static void REAL_(one_backward)(REAL_(step) * t)
{
    const keel_recurrent_args *a = t->c->node->args;
    const int64_t u = t->s.units;
    REAL *i = t->of, *f = i + u, *g = i + 2 * u, *o = i + 3 * u;
    REAL *squashed = t->room, *d_cell = squashed + u, *d = squashed + 2 * u;
    REAL_(gate)(t, &a->activation, t->cell, squashed);
    for (int64_t k = 0; k < u; k++) {
        d[3 * u + k] = t->dh[k] * squashed[k];
        d_cell[k] = t->dh[k] * o[k];
    }
    REAL_(slope)(t, &a->activation, t->cell, squashed, d_cell);
    for (int64_t k = 0; k < u; k++) {
        const REAL dc = t->dc[k] + d_cell[k];
        d[k] = dc * g[k];
        d[u + k] = dc * t->carry[k];
        d[2 * u + k] = dc * i[k];
        t->dc[k] = dc * f[k];
    }
    for (int k = 0; k < 4; k++) REAL_(slope)
    (t, k == 2 ? &a->activation : &a->recurrent, t->pre ? t->pre + k * u : NULL, t->of + k * u,
     d + k * u);
    memcpy(t->of, d, (size_t)(4 * u) * sizeof(REAL));
    memset(t->dh, 0, (size_t)u * sizeof(REAL));
    REAL_(product_back)(t, t->before, t->of, 0, 4, t->dh);
    t->dz = t->of;
}

static void REAL_(forward)(const keel_call *c)
{
    REAL_(run_forward)(c, &keel_cell_lstm, REAL_(one_forward));
}

static void REAL_(backward)(const keel_call *c)
{
    REAL_(run_backward)(c, &keel_cell_lstm, REAL_(one_backward));
}

static void REAL_(weights)(const keel_call *c)
{
    for (int g = 0; c->weight_grad[0] && g < keel_cell_lstm.gates; g++)
        REAL_(kernel_gradient)(c, &keel_cell_lstm, g, -1);
}
#endif
