/* Powers of values by a constant, of a constant by values, and of values by as many: see
 * ops/power.c, which spreads one over the other, too. */
#ifndef VALUE
#include "ops/binary.h"
#include "ops/x86/_double.h"

static keel_status prepare(keel_prepare *p)
{
    const keel_node *n = p->node;
    if (n->n_in == 2 && !keel_shape_equal(&n->in[0].shape, &n->in[1].shape)) return KEEL_EUNSUP;
    return vector_prepare(p);
}

/* By operand 0, the base, or 1. As in TensorFlow, the latter is 0 where the base is not above 0. */
static vd slope(vd a, vd b, int which)
{
    if (which) return vd_choose(vd_greater(a, vd_zero()), vd_pow(a, b) * vd_log(a), vd_zero());
    const vd y = b * vd_pow(a, b - 1);
    return vd_choose(vd_greater(vd_abs(b), vd_zero()), y, b * 0);
}

#define VALUE_FILE "ops/x86/power.c"
#include "ops/x86/_values.h"

VECTOR_BOTH(power, prepare);
#else
/* The two halves of an operand's values from i on. */
static void VALUE_(operand)(const keel_call *c, int which, vm m, int64_t i, vd half[2])
{
    const keel_node *n = c->node;
    if (keel_binary_constant(n, which)) {
        half[0] = half[1] = vd_set(((const keel_binary_args *)n->args)->constant);
        return;
    }
    const vf x = vx_load_some(m, (const VALUE *)c->in[keel_binary_input(n, which)] + i);
    half[0] = vd_low(x);
    half[1] = vd_high(x);
}

static void VALUE_(forward)(const keel_call *c)
{
    const int64_t count = c->rows * keel_row_count(&c->node->out[0]);
    VALUE *y = c->out[0];
    VECTOR_EACH(i, count, m, {
        vd a[2];
        vd b[2];
        VALUE_(operand)(c, 0, m, i, a);
        VALUE_(operand)(c, 1, m, i, b);
        vx_store_some(m, y + i, vf_of_doubles(vd_pow(a[0], b[0]), vd_pow(a[1], b[1])));
    });
}

static void VALUE_(backward)(const keel_call *c)
{
    const int64_t count = c->rows * keel_row_count(&c->node->out[0]);
    const VALUE *dy = c->out_grad[0];
    for (int which = 0; which < 2; which++) {
        const int k = keel_binary_input(c->node, which);
        VALUE *dx = keel_binary_constant(c->node, which) ? NULL : c->in_grad[k];
        if (!dx) continue;
        VECTOR_EACH(i, count, m, {
            vd a[2];
            vd b[2];
            const vf g = vx_load_some(m, dy + i);
            VALUE_(operand)(c, 0, m, i, a);
            VALUE_(operand)(c, 1, m, i, b);
            vx_store_doubles(m, dx + i, vd_low(g) * slope(a[0], b[0], which),
                             vd_high(g) * slope(a[1], b[1], which), c->in_adds[k]);
        });
    }
}
#endif
