/* A plain recurrent layer: see _recurrent.h. */
#include "ops/x86/_recurrent.h"

INLINE void forward_by(const step *s, gate_kind kind)
{
    VECTOR_EACH(k, s->units, m, {
        const vf x = vf_add(vf_load_some(m, s->z + k), vf_load_some(m, s->product + k));
        const vf y = gate_value(kind, x);
        vf_store_some(m, s->of + k, y);
        vf_store_some(m, s->h + k, y);
    });
}

static inline void step_forward(const step *s)
{
    if (s->activation == GATE_TANH)
        forward_by(s, GATE_TANH);
    else
        forward_by(s, s->activation);
}

static inline void step_backward(const step *s)
{
    VECTOR_EACH(k, s->units, m, {
        const vf y = vf_load_some(m, s->of + k);
        const vf d = vf_mul(vf_load_some(m, s->dh + k), gate_slope(s->activation, y));
        vf_store_some(m, s->of + k, d);
        vf_store_some(m, s->dh + k, vf_zero());
    });
}

RECURRENT_KERNEL(simple_rnn, NULL, NULL, NULL);
