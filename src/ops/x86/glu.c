/* Gated linear unit: see ops/glu.c. The halves of each stretch lie one behind the other, whatever
 * the axis. */
#ifndef VALUE
#include "ops/x86/_double.h"
#include "ops/axis.h"

#define VALUE_FILE "ops/x86/glu.c"
#include "ops/x86/_values.h"

VECTOR_BOTH(glu, vector_prepare);
#else
static void VALUE_(forward)(const keel_call *c)
{
    const keel_axis_split s = keel_axis_of(c, &c->node->out[0]);
    const int64_t half = s.n * s.inner;
    for (int64_t o = 0; o < c->rows * s.outer; o++) {
        const VALUE *a = (const VALUE *)c->in[0] + o * 2 * half, *b = a + half;
        VALUE *y = (VALUE *)c->out[0] + o * half;
        VECTOR_EACH(i, half, m, {
            const vf of_a = vx_load_some(m, a + i), of_b = vx_load_some(m, b + i);
            const vd low = vd_low(of_a) * vd_sigmoid(vd_low(of_b));
            const vd high = vd_high(of_a) * vd_sigmoid(vd_high(of_b));
            vx_store_some(m, y + i, vf_of_doubles(low, high));
        });
    }
}

static void VALUE_(backward)(const keel_call *c)
{
    const keel_axis_split s = keel_axis_of(c, &c->node->out[0]);
    const int64_t half = s.n * s.inner;
    for (int64_t o = 0; c->in_grad[0] && o < c->rows * s.outer; o++) {
        const VALUE *a = (const VALUE *)c->in[0] + o * 2 * half, *b = a + half;
        const VALUE *dy = (const VALUE *)c->out_grad[0] + o * half;
        VALUE *da = (VALUE *)c->in_grad[0] + o * 2 * half, *db = da + half;
        VECTOR_EACH(i, half, m, {
            const vf of_a = vx_load_some(m, a + i), of_b = vx_load_some(m, b + i);
            const vf g = vx_load_some(m, dy + i);
            const vd low = vd_low(of_b), high = vd_high(of_b);
            const vd low_a = vd_low(g) * vd_sigmoid(low), high_a = vd_high(g) * vd_sigmoid(high);
            const vd low_b = low_a * vd_low(of_a) * vd_sigmoid(-low);
            const vd high_b = high_a * vd_high(of_a) * vd_sigmoid(-high);
            vx_store_doubles(m, da + i, low_a, high_a, c->in_adds[0]);
            vx_store_doubles(m, db + i, low_b, high_b, c->in_adds[0]);
        });
    }
}
#endif
