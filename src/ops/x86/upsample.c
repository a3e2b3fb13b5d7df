/* Each place along one axis repeated: backward reads dy once and writes dx once, where the
 * reference writes dx `factor` times. Interpolation is left to the reference. */
#ifndef VALUE
#include "ops/x86/_vector.h"
#include "ops/args.h"
#include "ops/infer.h"

static keel_status prepare(keel_prepare *p)
{
    const keel_upsample_args *a = p->node->args;
    return a->between ? KEEL_EUNSUP : vector_prepare(p);
}

/* What lies before the axis counts the rows of the call. */
static keel_axis_split split_of(const keel_call *c)
{
    const keel_upsample_args *a = c->node->args;
    const keel_shape *in = &c->node->in[0].shape;
    keel_axis_split s = keel_split_at(in, (int)(a->axis < 0 ? a->axis + in->rank : a->axis));
    s.outer *= c->rows;
    return s;
}

#define VALUE_FILE "ops/x86/upsample.c"
#include "ops/x86/_values.h"

VECTOR_BOTH(upsample, prepare);
#else
static void VALUE_(forward)(const keel_call *c)
{
    const keel_upsample_args *a = c->node->args;
    const keel_axis_split s = split_of(c);
    const VALUE *x = c->in[0];
    VALUE *y = c->out[0];
    for (int64_t i = 0; i < s.outer * s.n; i++, x += s.inner)
        for (int64_t f = 0; f < a->factor; f++, y += s.inner)
            VECTOR_EACH(k, s.inner, m, vx_store_same(m, y + k, vx_load_some(m, x + k)));
}

static void VALUE_(backward)(const keel_call *c)
{
    const keel_upsample_args *a = c->node->args;
    const keel_axis_split s = split_of(c);
    const VALUE *dy = c->out_grad[0];
    VALUE *dx = c->in_grad[0];
    for (int64_t i = 0; dx && i < s.outer * s.n; i++, dx += s.inner, dy += a->factor * s.inner)
        VECTOR_EACH(k, s.inner, m, {
            vf sum = vx_load_some(m, dy + k);
            for (int64_t f = 1; f < a->factor; f++)
                sum = vf_add(sum, vx_load_some(m, dy + f * s.inner + k));
            if (c->in_adds[0]) sum = vf_add(vx_load_some(m, dx + k), sum);
            vx_store_some(m, dx + k, sum);
        });
}
#endif
