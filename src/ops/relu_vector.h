/* Rectifier, 8 or 16 at a time: y may be x and dx may be dy, each element is read before it is
 * written. */
#include "ops/_vector.h"
#include "ops/args.h"
#include <math.h>

static void forward(const keel_call *c)
{
    const keel_relu_args *a = c->node->args;
    const int64_t count = c->rows * keel_row_count(&c->node->out);
    const vf slope = vf_set((float)a->negative_slope), threshold = vf_set((float)a->threshold);
    const vf cap = vf_set(a->capped ? (float)a->max_value : INFINITY), zero = vf_zero();
    const float *x = c->in[0];
    float *y = c->out;
    if (a->capped || a->negative_slope != 0 || a->threshold != 0)
        VECTOR_EACH(i, count, m, {
            const vf v = vf_load_some(m, x + i);
            const vf low = vf_mul(slope, vf_sub(v, threshold));
            vf_store_some(m, y + i, vf_min(cap, vf_choose(vf_greater(v, threshold), v, low)));
        });
    else
        VECTOR_EACH(i, count, m, vf_store_some(m, y + i, vf_max(zero, vf_load_some(m, x + i))));
}

static void backward(const keel_call *c)
{
    const keel_relu_args *a = c->node->args;
    const int64_t count = c->rows * keel_row_count(&c->node->out);
    const vf slope = vf_set((float)a->negative_slope), zero = vf_zero();
    const vf cap = vf_set(a->capped ? (float)a->max_value : INFINITY);
    const float *y = c->out, *dy = c->out_grad;
    float *dx = c->in_grad[0];
    if (!dx) return;
    VECTOR_EACH(i, count, m, {
        const vf v = vf_load_some(m, y + i);
        const vf g = vf_load_some(m, dy + i);
        const vf high = vf_choose(vf_greater(cap, v), g, zero);
        vf d = vf_choose(vf_greater(v, zero), high, vf_mul(slope, g));
        if (c->in_adds[0]) d = vf_add(d, vf_load_some(m, dx + i));
        vf_store_some(m, dx + i, d);
    });
}

const keel_kernel VECTOR_KERNEL(relu) = {
    .op = "relu",
    .name = VECTOR_NAME,
    .priority = VECTOR_PRIORITY,
    .prepare = vector_prepare,
    .run = { [KEEL_FORWARD] = forward, [KEEL_BACKWARD] = backward },
};
