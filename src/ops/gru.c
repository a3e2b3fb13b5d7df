/* GRU over all steps of a row, after the product with its inputs: see ops/recurrent.h. z has the
 * gates z, r and the candidate side by side:
 *
 *     h' = z h + (1 - z) tanh(x + r (h W + b))      with reset_after
 *     h' = z h + (1 - z) tanh(x + (r h) W)          without
 *
 * tanh is the layer's activation; z and r go through the recurrent one. With reset_after there may
 * be Keras's bias [2, 3 U]: the first row is of z, the second of the state's product.
 *
 * The fourth part of what is saved of gates is h W + b, or r h without reset_after. backward leaves
 * there the gradient of x with reset_after, and r h without. */
#ifndef REAL
#include "ops/recurrent.h"
#include <string.h>

static keel_status infer(keel_node *n)
{
    return keel_recurrent_infer(n, &keel_cell_gru);
}

#define REAL_FILE "ops/gru.c"
#include "ops/real.h"

const keel_op keel_op_gru = {
    .name = "gru",
    KEEL_RECURRENT_OP,
    .cases =
        (const keel_case[]){
            { "3,6", "2,6|2,6", "reset_after" },
            { "3,6", "2,6", NULL },
            { "4,51|4", "17,51|2,51", "reset_after masked sequences" },
            { "4,51|4", "17,51", "masked zeros sequences" },
            { "3,9|3|3|3,3", "3,9|2,9", "reset_after masked stated dropped states backwards" },
            { "4,9|4|3|3,3", "3,9", "masked stated dropped states backwards" },
            { "3,9", "3,9", "reset_after by_silu gates_hard_sigmoid sequences" },
            { "3,9", "3,9", "by_relu gates_softmax sequences" },
            { "3,51|3,17", "17,51", "dropped by_relu gates_hard_sigmoid sequences" },
            { "3,27|3,9", "9,27|2,27", "reset_after dropped by_linear" },
            { NULL, NULL, NULL } },
};
#else
#include "ops/recurrent_real.h"

static void REAL_(one_forward)(REAL_(step) * t)
{
    const keel_recurrent_args *a = t->c->node->args;
    const int64_t u = t->s.units;
    const REAL *bias = t->c->node->n_weight > 1 ? t->c->weight[1] : NULL;
    REAL *z = t->of, *r = z + u, *hh = z + 2 * u, *inner = z + 3 * u;
    REAL *x = t->pre + 2 * u, *product = t->room; /* [3 U] */
    for (int64_t k = 0; bias && k < 3 * u; k++) t->pre[k] += bias[k];
    memset(product, 0, (size_t)(3 * u) * sizeof(REAL));
    if (bias) memcpy(product, bias + 3 * u, (size_t)(3 * u) * sizeof(REAL));
    REAL_(product)(t, t->before, 0, a->reset_after ? 3 : 2, product);
    for (int64_t k = 0; k < 2 * u; k++) t->pre[k] += product[k];
    REAL_(gate)(t, &a->recurrent, t->pre, z);
    REAL_(gate)(t, &a->recurrent, t->pre + u, r);
    if (a->reset_after) {
        for (int64_t k = 0; k < u; k++) {
            inner[k] = product[2 * u + k];
            x[k] += r[k] * inner[k];
        }
    } else {
        const REAL *drop = t->drop;
        for (int64_t k = 0; k < u; k++)
            inner[k] = r[k] * (drop ? t->before[k] * drop[2 * u + k] : t->before[k]);
        t->drop = NULL; /* it is in there */
        REAL_(product)(t, inner, 2, 3, t->pre);
        t->drop = drop;
    }
    REAL_(gate)(t, &a->activation, x, hh);
    for (int64_t k = 0; k < u; k++) t->h[k] = z[k] * t->before[k] + (1 - z[k]) * hh[k];
}

static void REAL_(one_backward)(REAL_(step) * t)
{
    const keel_recurrent_args *a = t->c->node->args;
    const int64_t u = t->s.units;
    REAL *z = t->of, *r = z + u, *hh = z + 2 * u, *inner = z + 3 * u;
    REAL *d = t->room, *dx = d + 3 * u, *dh = d + 4 * u; /* d: of what the gates were given */
    const REAL *const before = t->before;
    for (int64_t k = 0; k < u; k++) {
        d[k] = t->dh[k] * (before[k] - hh[k]);
        d[2 * u + k] = t->dh[k] * (1 - z[k]);
        dh[k] = t->dh[k] * z[k];
    }
    REAL_(slope)(t, &a->activation, t->pre ? t->pre + 2 * u : NULL, hh, d + 2 * u);
    memcpy(dx, d + 2 * u, (size_t)u * sizeof(REAL));
    if (a->reset_after) {
        for (int64_t k = 0; k < u; k++) {
            d[u + k] = dx[k] * inner[k];
            d[2 * u + k] = dx[k] * r[k];
        }
    } else {
        REAL *of_inner = d + 5 * u, *const ddrop = t->ddrop;
        const REAL *const drop = t->drop;
        memset(of_inner, 0, (size_t)u * sizeof(REAL));
        t->drop = NULL, t->ddrop = NULL;
        REAL_(product_back)(t, inner, d, 2, 3, of_inner);
        t->drop = drop, t->ddrop = ddrop;
        for (int64_t k = 0; k < u; k++) {
            const REAL factor = drop ? drop[2 * u + k] : 1;
            d[u + k] = of_inner[k] * before[k] * factor;
            dh[k] += of_inner[k] * r[k] * factor;
            if (ddrop) ddrop[2 * u + k] += of_inner[k] * r[k] * before[k];
        }
    }
    REAL_(slope)(t, &a->recurrent, t->pre, z, d);
    REAL_(slope)(t, &a->recurrent, t->pre ? t->pre + u : NULL, r, d + u);
    REAL_(product_back)(t, before, d, 0, a->reset_after ? 3 : 2, dh);
    memcpy(t->of, d, (size_t)(3 * u) * sizeof(REAL));
    if (a->reset_after) memcpy(inner, dx, (size_t)u * sizeof(REAL));
    memcpy(t->dh, dh, (size_t)u * sizeof(REAL));
    memcpy(d + 2 * u, dx, (size_t)u * sizeof(REAL));
    t->dz = d;
}

static void REAL_(forward)(const keel_call *c)
{
    REAL_(run_forward)(c, &keel_cell_gru, REAL_(one_forward));
}

static void REAL_(backward)(const keel_call *c)
{
    REAL_(run_backward)(c, &keel_cell_gru, REAL_(one_backward));
}

/* db of the first row is the sum of gradients of z, of the second that of the product's. */
static void REAL_(bias_gradient)(const keel_call *c)
{
    const int64_t u = c->node->weight[0].shape.dim[0];
    const int64_t n = c->rows * c->node->in[0].shape.dim[0];
    const REAL *of = c->saved[KEEL_SAVED_GATES];
    REAL *db = c->weight_grad[1];
    for (int64_t k = 0; k < 6 * u; k++) {
        const int64_t at = k < 2 * u ? k : k < 3 * u ? k + u : k - 3 * u;
        double sum = 0;
        for (int64_t i = 0; i < n; i++) sum += of[i * 4 * u + at];
        REAL_(store)(db + k, &sum, 1, c->weight_adds);
    }
}

static void REAL_(weights)(const keel_call *c)
{
    const keel_recurrent_args *a = c->node->args;
    for (int g = 0; c->weight_grad[0] && g < 3; g++)
        REAL_(kernel_gradient)(c, &keel_cell_gru, g, g == 2 && !a->reset_after ? 3 : -1);
    if (c->node->n_weight > 1 && c->weight_grad[1]) REAL_(bias_gradient)(c);
}
#endif
