/* Sparsemax over the last axis: see ops/sparsemax.c for the steps that find tau. */
#ifndef VALUE
#include "ops/x86/_double.h"
#include "ops/x86/_last_axis.h"

/* 1 in each lane where x is more than `than`, else 0: to count them by adding. */
static inline vd ones_above(vd x, vd than)
{
    return vd_choose(vd_greater(x, than), vd_set(1), vd_zero());
}

static keel_status prepare(keel_prepare *p)
{
    KEEL_TRY(last_axis_prepare(p));
    /* measured: of 10 elements plain C is done before a vector's lanes are added up */
    return last_of(p->node) >= 4 * LANES ? KEEL_OK : KEEL_EUNSUP;
}

#define VALUE_FILE "ops/x86/sparsemax.c"
#include "ops/x86/_values.h"

VECTOR_BOTH(sparsemax, prepare);
#else
static double VALUE_(tau_of)(const VALUE *x, int64_t n)
{
    const vf none = vf_set(-INFINITY);
    double tau = -INFINITY;
    for (int64_t step = 0; step <= n; step++) {
        const vd than = vd_set(tau);
        vd sum = vd_zero(), above = vd_zero();
        VECTOR_EACH(i, n, m, {
            const vf v = vf_choose(m, vx_load_some(m, x + i), none);
            const vd low = vd_low(v), high = vd_high(v);
            sum += vd_choose(vd_greater(low, than), low, vd_zero());
            sum += vd_choose(vd_greater(high, than), high, vd_zero());
            above += ones_above(low, than) + ones_above(high, than);
        });
        const double next = (vd_sum(sum) - 1) / vd_sum(above);
        if (!(next > tau)) break;
        tau = next;
    }
    return tau;
}

static void VALUE_(forward)(const keel_call *c)
{
    const int64_t n = last_of(c->node), outer = c->rows * (keel_row_count(&c->node->out[0]) / n);
    for (int64_t o = 0; o < outer; o++) {
        const VALUE *x = (const VALUE *)c->in[0] + o * n;
        VALUE *y = (VALUE *)c->out[0] + o * n;
        const vd tau = vd_set(VALUE_(tau_of)(x, n));
        VECTOR_EACH(i, n, m, {
            const vf v = vx_load_some(m, x + i);
            const vd low = vd_max(vd_zero(), vd_low(v) - tau);
            const vd high = vd_max(vd_zero(), vd_high(v) - tau);
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
        vd sum = vd_zero(), support = vd_zero();
        VECTOR_EACH(i, n, m, {
            const vf v = vx_load_some(m, y + i), g = vx_load_some(m, dy + i); /* 0: no lane */
            const vd low = vd_low(v), high = vd_high(v), none = vd_zero();
            sum += vd_choose(vd_greater(low, none), vd_low(g), none);
            sum += vd_choose(vd_greater(high, none), vd_high(g), none);
            support += ones_above(low, none) + ones_above(high, none);
        });
        const vd mean = vd_set(vd_sum(sum) / vd_sum(support));
        VECTOR_EACH(i, n, m, {
            const vf v = vx_load_some(m, y + i), g = vx_load_some(m, dy + i);
            const vd none = vd_zero();
            const vd low = vd_choose(vd_greater(vd_low(v), none), vd_low(g) - mean, none);
            const vd high = vd_choose(vd_greater(vd_high(v), none), vd_high(g) - mean, none);
            vx_store_doubles(m, dx + i, low, high, c->in_adds[0]);
        });
    }
}
#endif
