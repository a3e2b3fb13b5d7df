/* Softmax along an axis that is not the last: 8 or 16 neighbours go along it together, and their
 * exponentials wait for their sums in scratch, in float32. */
#ifndef VALUE
#include "ops/x86/_last_axis.h"
#include "ops/x86/_pointwise.h"
#include <math.h>

static keel_status prepare(keel_prepare *p)
{
    const keel_axis_split a = axis_of_node(p->node);
    KEEL_TRY(vector_prepare(p));
    p->scratch = a.n * LANES * (int64_t)sizeof(float);
    return a.inner > 1 ? KEEL_OK : KEEL_EUNSUP;
}

#define VALUE_FILE "ops/x86/softmax_columns.c"
#include "ops/x86/_values.h"

KEEL_USES_OP(softmax);

const keel_kernel VECTOR_KERNEL(softmax_columns) = {
    VECTOR_HEAD(softmax, prepare),
    .run = { [KEEL_FORWARD] = forward_f32, [KEEL_BACKWARD] = backward_f32 },
    .narrow = { [KEEL_FORWARD] = forward_bf16, [KEEL_BACKWARD] = backward_bf16 },
};
#else
/* Of the columns that m has, `inner` elements from one number of a column to the next. */
static void VALUE_(columns)(const VALUE *x, VALUE *y, int64_t n, int64_t inner, vm m, float *e)
{
    vf most = vx_load_some(m, x), sum = vf_zero();
    for (int64_t j = 1; j < n; j++) most = vf_max(most, vx_load_some(m, x + j * inner));
    for (int64_t j = 0; j < n; j++) {
        const vf v = exponential(vf_sub(vx_load_some(m, x + j * inner), most));
        sum = vf_add(sum, v);
        vf_store(e + j * LANES, v);
    }
    const vf share = vf_div(vf_set(1), sum);
    for (int64_t j = 0; j < n; j++)
        vx_store_some(m, y + j * inner, vf_mul(vf_load(e + j * LANES), share));
}

static void VALUE_(forward)(const keel_call *c)
{
    const keel_axis_split a = axis_of_node(c->node);
    for (int64_t o = 0; o < c->rows * a.outer; o++) {
        const VALUE *x = (const VALUE *)c->in[0] + o * a.n * a.inner;
        VALUE *y = (VALUE *)c->out[0] + o * a.n * a.inner;
        VECTOR_EACH(i, a.inner, m, VALUE_(columns)(x + i, y + i, a.n, a.inner, m, c->scratch););
    }
}

static void VALUE_(columns_back)(const VALUE *y, const VALUE *dy, VALUE *dx, int64_t n,
                                 int64_t inner, vm m, bool adds)
{
    vf sum = vf_zero();
    for (int64_t j = 0; j < n; j++)
        sum = vf_fma(vx_load_some(m, y + j * inner), vx_load_some(m, dy + j * inner), sum);
    for (int64_t j = 0; j < n; j++) {
        VALUE *to = dx + j * inner;
        vf g = vf_mul(vx_load_some(m, y + j * inner), vf_sub(vx_load_some(m, dy + j * inner), sum));
        if (adds) g = vf_add(g, vx_load_some(m, to));
        vx_store_some(m, to, g);
    }
}

static void VALUE_(backward)(const keel_call *c)
{
    const keel_axis_split a = axis_of_node(c->node);
    for (int64_t o = 0; c->in_grad[0] && o < c->rows * a.outer; o++) {
        const int64_t at = o * a.n * a.inner;
        const VALUE *y = (const VALUE *)c->out[0] + at, *dy = (const VALUE *)c->out_grad[0] + at;
        VALUE *dx = (VALUE *)c->in_grad[0] + at;
        VECTOR_EACH(i, a.inner, m,
                    VALUE_(columns_back)(y + i, dy + i, dx + i, a.n, a.inner, m, c->in_adds[0]););
    }
}
#endif
