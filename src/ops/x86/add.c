/* The sum of several inputs, 8 or 16 elements at a time; y may be input 0, and its gradient dy. */
#ifndef VALUE
#include "ops/x86/_vector.h"

#define VALUE_FILE "ops/x86/add.c"
#include "ops/x86/_values.h"

VECTOR_BOTH(add, vector_prepare);
#else
static void VALUE_(forward)(const keel_call *c)
{
    const int64_t count = c->rows * keel_row_count(&c->node->out[0]);
    const int n = c->node->n_in;
    VALUE *y = c->out[0];
    VECTOR_EACH(i, count, m, {
        vf sum = vx_load_some(m, (const VALUE *)c->in[0] + i);
        for (int k = 1; k < n; k++) sum = vf_add(sum, vx_load_some(m, (const VALUE *)c->in[k] + i));
        vx_store_some(m, y + i, sum);
    });
}

static void VALUE_(backward)(const keel_call *c)
{
    const int64_t count = c->rows * keel_row_count(&c->node->out[0]);
    const VALUE *dy = c->out_grad[0];
    for (int k = c->node->n_in - 1; k >= 0;
         k--) { /* input 0 last, because its gradient may share memory with dy */
        VALUE *dx = c->in_grad[k];
        if (!dx) continue;
        if (c->in_adds[k])
            VECTOR_EACH(i, count, m, {
                const vf sum = vf_add(vx_load_some(m, dx + i), vx_load_some(m, dy + i));
                vx_store_some(m, dx + i, sum);
            });
        else if (dx != dy)
            memcpy(dx, dy, (size_t)count * sizeof *dx);
    }
}
#endif
