/* The sum of several inputs, 8 or 16 elements at a time; y may be input 0, and its gradient dy. */
#include "ops/_vector.h"

static void forward(const keel_call *c)
{
    const int64_t count = c->rows * keel_row_count(&c->node->out);
    const int n = c->node->n_in;
    float *y = c->out;
    VECTOR_EACH(i, count, m, {
        vf sum = vf_load_some(m, (const float *)c->in[0] + i);
        for (int k = 1; k < n; k++) sum = vf_add(sum, vf_load_some(m, (const float *)c->in[k] + i));
        vf_store_some(m, y + i, sum);
    });
}

static void backward(const keel_call *c)
{
    const int64_t count = c->rows * keel_row_count(&c->node->out);
    const float *dy = c->out_grad;
    for (int k = c->node->n_in - 1; k >= 0; k--) { /* input 0 last: its gradient may be dy */
        float *dx = c->in_grad[k];
        if (!dx) continue;
        if (c->in_adds[k])
            VECTOR_EACH(i, count, m, {
                const vf sum = vf_add(vf_load_some(m, dx + i), vf_load_some(m, dy + i));
                vf_store_some(m, dx + i, sum);
            });
        else if (dx != dy)
            memcpy(dx, dy, (size_t)count * sizeof *dx);
    }
}

const keel_kernel VECTOR_KERNEL(add) = {
    .op = "add",
    .name = VECTOR_NAME,
    .priority = VECTOR_PRIORITY,
    .prepare = vector_prepare,
    .run = { [KEEL_FORWARD] = forward, [KEEL_BACKWARD] = backward },
};
