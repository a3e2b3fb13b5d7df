/* Rectifier, 8 or 16 at a time: y may be x and dx may be dy, each element is read before it is
 * written. */
#ifndef VALUE
#include "ops/x86/_vector.h"
#include "ops/args.h"
#include <math.h>

#define VALUE_FILE "ops/x86/relu.c"
#include "ops/x86/_values.h"

VECTOR_BOTH(relu, vector_prepare);
#else
static void VALUE_(forward)(const keel_call *c)
{
    const keel_relu_args *a = c->node->args;
    const int64_t count = c->rows * keel_row_count(&c->node->out[0]);
    const vf slope = vf_set((float)a->negative_slope), threshold = vf_set((float)a->threshold);
    const vf cap = vf_set(a->capped ? (float)a->max_value : INFINITY), zero = vf_zero();
    const bool flat = a->negative_slope == 0;
    const VALUE *x = c->in[0];
    VALUE *y = c->out[0];
    if (a->capped || a->negative_slope != 0 || a->threshold != 0)
        VECTOR_EACH(i, count, m, {
            const vf v = vx_load_some(m, x + i);
            const vf low = flat ? zero : vf_mul(slope, vf_sub(v, threshold)); /* 0 of -inf */
            vx_store_some(m, y + i, vf_min(cap, vf_choose(vf_beats(v, threshold), v, low)));
        });
    else
        VECTOR_EACH(i, count, m, vx_store_same(m, y + i, vf_max(zero, vx_load_some(m, x + i))));
}

static void VALUE_(backward)(const keel_call *c)
{
    const keel_relu_args *a = c->node->args;
    const int64_t count = c->rows * keel_row_count(&c->node->out[0]);
    const vf below = vf_set((float)a->negative_slope), zero = vf_zero();
    const vf at = a->capped || a->threshold != 0 ? zero : below;
    const vf cap = vf_set(a->capped ? (float)a->max_value : INFINITY);
    const VALUE *y = c->out[0], *dy = c->out_grad[0];
    VALUE *dx = c->in_grad[0];
    if (!dx) return;
    VECTOR_EACH(i, count, m, {
        const vf v = vx_load_some(m, y + i);
        const vf g = vx_load_some(m, dy + i);
        const vf high = vf_choose(vf_greater(cap, v), g, zero);
        const vf low = vf_mul(vf_choose(vf_greater(zero, v), below, at), g);
        vf d = vf_choose(vf_greater(v, zero), high, low);
        if (c->in_adds[0]) d = vf_add(d, vx_load_some(m, dx + i));
        vx_store_some(m, dx + i, d);
    });
}
#endif
