/* Softmax over the last axis, 8 or 16 elements at a time; exponentials wait for their sum in
 * scratch, in float32. */
#ifndef VALUE
#include "ops/x86/_last_axis.h"
#include "ops/x86/_pointwise.h"
#include <math.h>

static keel_status prepare(keel_prepare *p)
{
    KEEL_TRY(last_axis_prepare(p));
    p->scratch = last_of(p->node) * (int64_t)sizeof(float);
    return KEEL_OK;
}

#define VALUE_FILE "ops/x86/softmax.c"
#include "ops/x86/_values.h"

VECTOR_BOTH(softmax, prepare);
#else
static void VALUE_(forward)(const keel_call *c)
{
    const int64_t n = last_of(c->node), outer = c->rows * (keel_row_count(&c->node->out[0]) / n);
    float *e = c->scratch;
    for (int64_t o = 0; o < outer; o++) {
        const VALUE *x = (const VALUE *)c->in[0] + o * n;
        VALUE *y = (VALUE *)c->out[0] + o * n;
        vf most = vf_set(-INFINITY), sum = vf_zero();
        VECTOR_EACH(i, n, m, {
            const vf v = vf_choose(m, vx_load_some(m, x + i), vf_set(-INFINITY));
            most = vf_max(most, v);
        });
        const vf shift = vf_set(vf_largest(most));
        VECTOR_EACH(i, n, m, {
            const vf v = exponential(vf_sub(vx_load_some(m, x + i), shift));
            sum = vf_add(sum, vf_choose(m, v, vf_zero()));
            vf_store_some(m, e + i, v);
        });
        const vf share = vf_set(1 / vf_sum(sum));
        VECTOR_EACH(i, n, m, vx_store_some(m, y + i, vf_mul(vf_load_some(m, e + i), share)));
    }
}

static void VALUE_(backward)(const keel_call *c)
{
    const int64_t n = last_of(c->node), outer = c->rows * (keel_row_count(&c->node->out[0]) / n);
    for (int64_t o = 0; c->in_grad[0] && o < outer; o++) {
        const VALUE *y = (const VALUE *)c->out[0] + o * n,
                    *dy = (const VALUE *)c->out_grad[0] + o * n;
        VALUE *dx = (VALUE *)c->in_grad[0] + o * n;
        vf sum = vf_zero();
        VECTOR_EACH(i, n, m, sum = vf_fma(vx_load_some(m, y + i), vx_load_some(m, dy + i), sum));
        const vf mean = vf_set(vf_sum(sum));
        VECTOR_EACH(i, n, m, {
            const vf v = vx_load_some(m, y + i);
            vf g = vf_mul(v, vf_sub(vx_load_some(m, dy + i), mean));
            if (c->in_adds[0]) g = vf_add(g, vx_load_some(m, dx + i));
            vx_store_some(m, dx + i, g);
        });
    }
}
#endif
