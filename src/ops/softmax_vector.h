/* Softmax over the last axis, float32, 8 or 16 elements at a time. */
#include "ops/_pointwise_vector.h"
#include "ops/args.h"
#include <math.h>

static int64_t last_of(const keel_node *n)
{
    return n->out.shape.dim[n->out.shape.rank - 1];
}

static void forward(const keel_call *c)
{
    const int64_t n = last_of(c->node), outer = c->rows * (keel_row_count(&c->node->out) / n);
    for (int64_t o = 0; o < outer; o++) {
        const float *x = (const float *)c->in[0] + o * n;
        float *y = (float *)c->out + o * n;
        vf most = vf_set(-INFINITY), sum = vf_zero();
        VECTOR_EACH(i, n, m, {
            const vf v = vf_choose(m, vf_load_some(m, x + i), vf_set(-INFINITY));
            most = vf_max(most, v);
        });
        const vf shift = vf_set(vf_largest(most));
        VECTOR_EACH(i, n, m, {
            const vf e = exponential(vf_sub(vf_load_some(m, x + i), shift));
            sum = vf_add(sum, vf_choose(m, e, vf_zero()));
            vf_store_some(m, y + i, e);
        });
        const vf share = vf_set(1 / vf_sum(sum));
        VECTOR_EACH(i, n, m, vf_store_some(m, y + i, vf_mul(vf_load_some(m, y + i), share)));
    }
}

static void backward(const keel_call *c)
{
    const int64_t n = last_of(c->node), outer = c->rows * (keel_row_count(&c->node->out) / n);
    for (int64_t o = 0; c->in_grad[0] && o < outer; o++) {
        const float *y = (const float *)c->out + o * n, *dy = (const float *)c->out_grad + o * n;
        float *dx = (float *)c->in_grad[0] + o * n;
        vf sum = vf_zero();
        VECTOR_EACH(i, n, m, sum = vf_fma(vf_load_some(m, y + i), vf_load_some(m, dy + i), sum));
        const vf mean = vf_set(vf_sum(sum));
        VECTOR_EACH(i, n, m, {
            const vf v = vf_load_some(m, y + i);
            vf g = vf_mul(v, vf_sub(vf_load_some(m, dy + i), mean));
            if (c->in_adds[0]) g = vf_add(g, vf_load_some(m, dx + i));
            vf_store_some(m, dx + i, g);
        });
    }
}

static keel_status prepare(keel_prepare *p)
{
    const int64_t axis = ((const keel_axis_args *)p->node->args)->axis;
    KEEL_TRY(vector_prepare(p));
    return axis == -1 || axis == p->node->out.shape.rank - 1 ? KEEL_OK : KEEL_EUNSUP;
}

const keel_kernel VECTOR_KERNEL(softmax) = {
    .op = "softmax",
    .name = VECTOR_NAME,
    .priority = VECTOR_PRIORITY,
    .prepare = prepare,
    .run = { [KEEL_FORWARD] = forward, [KEEL_BACKWARD] = backward },
};
