/* A plain recurrent layer in float32: see _recurrent.h. */
#include "ops/x86/_recurrent.h"

static inline void step_forward(const step *s)
{
    VECTOR_EACH(k, s->units, m, {
        const vf y = tangent(vf_add(vf_load_some(m, s->z + k), vf_load_some(m, s->product + k)));
        vf_store_some(m, s->of + k, y);
        vf_store_some(m, s->h + k, y);
    });
}

static inline void step_backward(const step *s)
{
    VECTOR_EACH(k, s->units, m, {
        const vf y = vf_load_some(m, s->of + k);
        const vf d = vf_mul(vf_load_some(m, s->dh + k), vf_sub(vf_set(1), vf_mul(y, y)));
        vf_store_some(m, s->of + k, d);
        vf_store_some(m, s->dh + k, vf_zero());
    });
}

static void weights(const keel_call *c)
{
    run_weights(c, &keel_cell_simple_rnn);
}

RECURRENT_KERNEL(simple_rnn);
