/* Logarithm of softmax over the last axis, worked out in double precision: a logarithm near 0 is
 * the difference of two that are alike. */
#ifndef VALUE
#include "ops/x86/_double.h"
#include "ops/x86/_last_axis.h"

#define VALUE_FILE "ops/x86/log_softmax.c"
#include "ops/x86/_values.h"

VECTOR_BOTH(log_softmax, last_axis_prepare);
#else
static void VALUE_(forward)(const keel_call *c)
{
    const int64_t n = last_of(c->node), outer = c->rows * (keel_row_count(&c->node->out[0]) / n);
    for (int64_t o = 0; o < outer; o++) {
        const VALUE *x = (const VALUE *)c->in[0] + o * n;
        VALUE *y = (VALUE *)c->out[0] + o * n;
        const vf none = vf_set(-INFINITY);
        vf most = none;
        VECTOR_EACH(i, n, m, most = vf_max(most, vf_choose(m, vx_load_some(m, x + i), none)));
        const vd largest = vd_set((double)vf_largest(most));
        vd sum = vd_zero();
        VECTOR_EACH(i, n, m, {
            const vf v = vf_choose(m, vx_load_some(m, x + i), none);
            sum += vd_exp(vd_low(v) - largest) + vd_exp(vd_high(v) - largest);
        });
        const vd of_sum = vd_set(log(vd_sum(sum)));
        VECTOR_EACH(i, n, m, {
            const vf v = vx_load_some(m, x + i);
            const vd low = vd_low(v) - largest - of_sum, high = vd_high(v) - largest - of_sum;
            vx_store_some(m, y + i, vf_of_doubles(low, high));
        });
    }
}

static void VALUE_(backward)(const keel_call *c)
{
    const int64_t n = last_of(c->node), outer = c->rows * (keel_row_count(&c->node->out[0]) / n);
    for (int64_t o = 0; c->in_grad[0] && o < outer; o++) {
        const VALUE *y = (const VALUE *)c->out[0] + o * n;
        const VALUE *dy = (const VALUE *)c->out_grad[0] + o * n;
        VALUE *dx = (VALUE *)c->in_grad[0] + o * n;
        vd of_lanes = vd_zero();
        VECTOR_EACH(i, n, m, {
            const vf g = vx_load_some(m, dy + i); /* 0 where there is none */
            of_lanes += vd_low(g) + vd_high(g);
        });
        const vd sum = vd_set(vd_sum(of_lanes));
        VECTOR_EACH(i, n, m, {
            const vf v = vx_load_some(m, y + i), g = vx_load_some(m, dy + i);
            const vd low = vd_low(g) - vd_exp(vd_low(v)) * sum;
            const vd high = vd_high(g) - vd_exp(vd_high(v)) * sum;
            vx_store_doubles(m, dx + i, low, high, c->in_adds[0]);
        });
    }
}
#endif
