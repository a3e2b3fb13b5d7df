/* y = (x - mean) / scale, or the way back, for statistics that are one for all, or repeat along the
 * last dims: they are written out until they fill vectors, and the row goes by such periods. */
#ifndef VALUE
#include "ops/normalization.h"
#include "ops/x86/_vector.h"
#include <math.h>

enum { FEW = 16 * LANES, MOST = 1 << 16 };

/* Elements of the statistics, if they are those of the last dims of a row; else 0. */
static int64_t own_of(const keel_node *n)
{
    const keel_shape *x = &n->in[0].shape;
    const keel_shape *over = &((const keel_normalization_args *)n->args)->over;
    int d = x->rank - 1;
    int64_t own = 1;
    for (; d >= 0 && over->dim[d] == x->dim[d]; d--) own *= x->dim[d];
    for (; d >= 0 && over->dim[d] == 1; d--) continue;
    return d < 0 ? own : 0;
}

/* How many elements are treated alike, as one stretch: a row has a whole number of statistics. */
static int64_t period_of(int64_t own)
{
    return own < FEW ? own * LANES : own;
}

static keel_status prepare(keel_prepare *p)
{
    KEEL_TRY(vector_prepare(p));
    const int64_t own = own_of(p->node);
    if (own == 0 || own > MOST) return KEEL_EUNSUP;
    p->scratch = 2 * period_of(own) * (int64_t)sizeof(float);
    return KEEL_OK;
}

/* Writes scale and, behind it, mean of each element of a period. */
static void fill(const keel_call *c, float *scale, float *mean, int64_t own, int64_t period)
{
    const keel_normalization_args *a = c->node->args;
    const bool given = c->node->n_weight == 0;
    for (int64_t k = 0; k < own; k++) {
        const double variance = given ? a->variance[k] : (double)((const float *)c->weight[1])[k];
        const double root = sqrt(variance);
        mean[k] = given ? (float)a->mean[k] : ((const float *)c->weight[0])[k];
        scale[k] = (float)(root > 1e-7 ? root : 1e-7);
    }
    for (int64_t k = own; k < period; k++) {
        mean[k] = mean[k - own];
        scale[k] = scale[k - own];
    }
}

#define VALUE_FILE "ops/x86/normalization.c"
#include "ops/x86/_values.h"

VECTOR_BOTH(normalization, prepare);
#else
static void VALUE_(forward)(const keel_call *c)
{
    const bool invert = ((const keel_normalization_args *)c->node->args)->invert;
    const int64_t own = own_of(c->node), period = period_of(own);
    const int64_t count = c->rows * keel_row_count(&c->node->out[0]);
    float *const scale = c->scratch, *const mean = scale + period;
    const VALUE *x = c->in[0];
    VALUE *y = c->out[0];
    fill(c, scale, mean, own, period);
    for (int64_t i = 0; i < count; i += period, x += period, y += period) {
        const int64_t n = count - i < period ? count - i : period;
        VECTOR_EACH(k, n, m, {
            const vf s = vf_load_some(m, scale + k);
            const vf about = vf_load_some(m, mean + k);
            const vf v = vx_load_some(m, x + k);
            vx_store_some(m, y + k, invert ? vf_fma(v, s, about) : vf_div(vf_sub(v, about), s));
        });
    }
}

static void VALUE_(backward)(const keel_call *c)
{
    const bool invert = ((const keel_normalization_args *)c->node->args)->invert;
    const int64_t own = own_of(c->node), period = period_of(own);
    const int64_t count = c->rows * keel_row_count(&c->node->out[0]);
    float *const scale = c->scratch, *const mean = scale + period;
    const VALUE *dy = c->out_grad[0];
    VALUE *dx = c->in_grad[0];
    if (!dx) return;
    fill(c, scale, mean, own, period);
    for (int64_t i = 0; i < count; i += period, dx += period, dy += period) {
        const int64_t n = count - i < period ? count - i : period;
        VECTOR_EACH(k, n, m, {
            const vf s = vf_load_some(m, scale + k);
            const vf v = vx_load_some(m, dy + k);
            vf g = invert ? vf_mul(v, s) : vf_div(v, s);
            if (c->in_adds[0]) g = vf_add(g, vx_load_some(m, dx + k));
            vx_store_some(m, dx + k, g);
        });
    }
}
#endif
