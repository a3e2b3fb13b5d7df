/* A sum and its layer normalisation in one pass over memory: see _layer_norm.h. The sum is rounded
 * to the type that it is stored in before it is normalised, as by two ops. */
#ifndef VALUE
#include "ops/x86/_layer_norm.h"

#define VALUE_FILE "ops/x86/add_layer_norm.c"
#include "ops/x86/_values.h"

VECTOR_BOTH_WEIGHTS(add_layer_norm, prepare);
#else
#include "ops/x86/_layer_norm.h"

static void VALUE_(forward)(const keel_call *c)
{
    VALUE_(normalize)(c, c->in[0], c->in[1], c->out[0], c->out[1]);
}

/* dx (+)= ds, if nothing comes back through y. */
static void VALUE_(pass_on)(const keel_call *c)
{
    const int64_t count = c->rows * keel_row_count(&c->node->out[0]);
    const VALUE *ds = c->out_grad[0];
    for (int k = 0; k < 2; k++) {
        VALUE *dx = c->in_grad[k];
        if (!dx) continue;
        VECTOR_EACH(i, count, m, {
            const vf v = vx_load_some(m, ds + i);
            vx_store_some(m, dx + i, c->in_adds[k] ? vf_add(v, vx_load_some(m, dx + i)) : v);
        });
    }
}

static void VALUE_(backward)(const keel_call *c)
{
    if (c->out_grad[1])
        VALUE_(normalize_back)(c, c->out[0], c->out_grad[1], c->out_grad[0], 2);
    else
        VALUE_(pass_on)(c);
}

static void VALUE_(weights)(const keel_call *c)
{
    VALUE_(normalize_weights)(c, c->out[0], c->out_grad[1]);
}
#endif
