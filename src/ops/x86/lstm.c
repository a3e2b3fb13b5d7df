/* LSTM: see _recurrent.h. */
#include "ops/x86/_recurrent.h"

INLINE void forward_by(const step *s, gate_kind activation, gate_kind recurrent)
{
    const int64_t u = s->units;
    VECTOR_EACH(k, u, m, {
        vf x[4];
        EACH(g, 4)
            x[g] =
                vf_add(vf_load_some(m, s->z + g * u + k), vf_load_some(m, s->product + g * u + k));
        x[0] = gate_value(recurrent, x[0]);
        x[1] = gate_value(recurrent, x[1]);
        x[2] = gate_value(activation, x[2]);
        x[3] = gate_value(recurrent, x[3]);
        EACH(g, 4) vf_store_some(m, s->of + g * u + k, x[g]);
        const vf c = vf_fma(x[1], vf_load_some(m, s->carry + k), vf_mul(x[0], x[2]));
        vf_store_some(m, s->cell + k, c);
        vf_store_some(m, s->h + k, vf_mul(x[3], gate_value(activation, c)));
    });
}

static inline void step_forward(const step *s)
{
    BY_GATES(forward_by, s);
}

INLINE void backward_by(const step *s, gate_kind activation, gate_kind recurrent)
{
    const int64_t u = s->units;
    VECTOR_EACH(k, u, m, {
        const vf i = vf_load_some(m, s->of + k), f = vf_load_some(m, s->of + u + k);
        const vf g = vf_load_some(m, s->of + 2 * u + k), o = vf_load_some(m, s->of + 3 * u + k);
        const vf t = gate_value(activation, vf_load_some(m, s->cell + k));
        const vf dh = vf_load_some(m, s->dh + k);
        const vf carry = s->carry ? vf_load_some(m, s->carry + k) : vf_zero();
        const vf dc = vf_fma(vf_mul(dh, o), gate_slope(activation, t), vf_load_some(m, s->dc + k));
        vf d[4];
        d[0] = vf_mul(vf_mul(dc, g), gate_slope(recurrent, i));
        d[1] = vf_mul(vf_mul(dc, carry), gate_slope(recurrent, f));
        d[2] = vf_mul(vf_mul(dc, i), gate_slope(activation, g));
        d[3] = vf_mul(vf_mul(dh, t), gate_slope(recurrent, o));
        EACH(p, 4) vf_store_some(m, s->of + p * u + k, d[p]);
        vf_store_some(m, s->dc + k, vf_mul(dc, f));
        vf_store_some(m, s->dh + k, vf_zero());
    });
}

static inline void step_backward(const step *s)
{
    BY_GATES(backward_by, s);
}

RECURRENT_KERNEL(lstm, NULL, NULL, NULL);
