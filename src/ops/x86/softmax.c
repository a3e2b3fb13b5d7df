/* Softmax along any axis, 8 or 16 elements at a time: of the last one neighbours along it, of
 * another one neighbours of different sums. Exponentials wait for their sum in scratch, in float32.
 */
#ifndef VALUE
#include "ops/x86/_last_axis.h"
#include "ops/x86/_pointwise.h"
#include <math.h>

static keel_status prepare(keel_prepare *p)
{
    const keel_axis_split a = axis_of_node(p->node);
    KEEL_TRY(vector_prepare(p));
    p->scratch = a.n * (a.inner > 1 ? LANES : 1) * (int64_t)sizeof(float);
    return KEEL_OK;
}

#define VALUE_FILE "ops/x86/softmax.c"
#include "ops/x86/_values.h"

VECTOR_BOTH(softmax, prepare);
#else
static void VALUE_(forward_last)(const keel_call *c)
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

static void VALUE_(backward_last)(const keel_call *c)
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
    if (a.inner == 1) {
        VALUE_(forward_last)(c);
        return;
    }
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
    if (a.inner == 1) {
        VALUE_(backward_last)(c);
        return;
    }
    for (int64_t o = 0; c->in_grad[0] && o < c->rows * a.outer; o++) {
        const int64_t at = o * a.n * a.inner;
        const VALUE *y = (const VALUE *)c->out[0] + at, *dy = (const VALUE *)c->out_grad[0] + at;
        VALUE *dx = (VALUE *)c->in_grad[0] + at;
        VECTOR_EACH(i, a.inner, m,
                    VALUE_(columns_back)(y + i, dy + i, dx + i, a.n, a.inner, m, c->in_adds[0]););
    }
}
#endif
