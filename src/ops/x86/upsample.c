/* Each place along one axis repeated, or interpolated. Backward of repeating reads dy once and
 * writes dx once, where the reference writes dx `factor` times; that of interpolating adds up the
 * gradient of a line of places in scratch. */
#ifndef VALUE
#include "ops/x86/_vector.h"
#include "ops/infer.h"
#include "ops/upsample.h"

/* What lies before the axis counts the rows of the call. */
static keel_axis_split split_of(const keel_call *c)
{
    const keel_upsample_args *a = c->node->args;
    const keel_shape *in = &c->node->in[0].shape;
    keel_axis_split s = keel_split_at(in, (int)(a->axis < 0 ? a->axis + in->rank : a->axis));
    s.outer *= c->rows;
    return s;
}

static keel_status prepare(keel_prepare *p)
{
    const keel_upsample_args *a = p->node->args;
    KEEL_TRY(vector_prepare(p));
    if (a->between && p->pass == KEEL_BACKWARD) {
        const keel_call c = { .node = p->node, .rows = 1 };
        const keel_axis_split s = split_of(&c);
        p->scratch = s.n * s.inner * (int64_t)sizeof(float);
    }
    return KEEL_OK;
}

#define VALUE_FILE "ops/x86/upsample.c"
#include "ops/x86/_values.h"

VECTOR_BOTH(upsample, prepare);
#else
static void VALUE_(copy)(VALUE *y, const VALUE *x, int64_t n)
{
    VECTOR_EACH(k, n, m, vx_store_same(m, y + k, vx_load_some(m, x + k)));
}

static void VALUE_(interpolate)(const keel_upsample_args *a, const keel_axis_split *s,
                                const VALUE *x, VALUE *y)
{
    for (int64_t o = 0; o < s->n * a->factor; o++, y += s->inner) {
        const keel_upsample_place p = keel_upsample_place_of(a, s->n, o);
        const VALUE *first = x + p.first * s->inner, *second = x + p.second * s->inner;
        const vf share = vf_set((float)p.share);
        if (p.share > 0)
            VECTOR_EACH(k, s->inner, m, {
                const vf one = vx_load_some(m, first + k), other = vx_load_some(m, second + k);
                vx_store_some(m, y + k, vf_fma(share, vf_sub(other, one), one));
            });
        else
            VALUE_(copy)(y, first, s->inner);
    }
}

static void VALUE_(forward)(const keel_call *c)
{
    const keel_upsample_args *a = c->node->args;
    const keel_axis_split s = split_of(c);
    const int64_t line = s.n * s.inner;
    const VALUE *x = c->in[0];
    VALUE *y = c->out[0];
    for (int64_t i = 0; i < s.outer; i++, x += line, y += line * a->factor) {
        if (a->between)
            VALUE_(interpolate)(a, &s, x, y);
        else
            for (int64_t o = 0; o < s.n * a->factor; o++)
                VALUE_(copy)(y + o * s.inner, x + o / a->factor * s.inner, s.inner);
    }
}

static void VALUE_(add_share)(float *sums, const VALUE *dy, double share, int64_t n)
{
    const vf by = vf_set((float)share);
    VECTOR_EACH(
        k, n, m,
        vf_store_some(m, sums + k, vf_fma(by, vx_load_some(m, dy + k), vf_load_some(m, sums + k))));
}

/* dx of one line of places. */
static void VALUE_(give_shares)(const keel_call *c, const keel_axis_split *s, const VALUE *dy,
                                VALUE *dx)
{
    const keel_upsample_args *a = c->node->args;
    float *const sums = c->scratch;
    memset(sums, 0, (size_t)(s->n * s->inner) * sizeof *sums);
    for (int64_t o = 0; o < s->n * a->factor; o++, dy += s->inner) {
        const keel_upsample_place p = keel_upsample_place_of(a, s->n, o);
        VALUE_(add_share)(sums + p.first * s->inner, dy, 1 - p.share, s->inner);
        if (p.share > 0) VALUE_(add_share)(sums + p.second * s->inner, dy, p.share, s->inner);
    }
    VECTOR_MOVE(dx, sums, s->n * s->inner, c->in_adds[0]);
}

/* dx of one place that is repeated. */
static void VALUE_(give_sum)(const keel_call *c, const keel_axis_split *s, const VALUE *dy,
                             VALUE *dx)
{
    const keel_upsample_args *a = c->node->args;
    VECTOR_EACH(k, s->inner, m, {
        vf sum = vx_load_some(m, dy + k);
        for (int64_t f = 1; f < a->factor; f++)
            sum = vf_add(sum, vx_load_some(m, dy + f * s->inner + k));
        if (c->in_adds[0]) sum = vf_add(vx_load_some(m, dx + k), sum);
        vx_store_some(m, dx + k, sum);
    });
}

static void VALUE_(backward)(const keel_call *c)
{
    const keel_upsample_args *a = c->node->args;
    const keel_axis_split s = split_of(c);
    const int64_t line = s.n * s.inner;
    const VALUE *dy = c->out_grad[0];
    VALUE *dx = c->in_grad[0];
    for (int64_t i = 0; dx && i < s.outer; i++, dx += line, dy += line * a->factor) {
        if (a->between)
            VALUE_(give_shares)(c, &s, dy, dx);
        else
            for (int64_t k = 0; k < s.n; k++)
                VALUE_(give_sum)(c, &s, dy + k * a->factor * s.inner, dx + k * s.inner);
    }
}
#endif
