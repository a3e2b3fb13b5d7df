/* GRU: see _recurrent.h and ops/gru.c. */
#include "ops/x86/_recurrent.h"

/* ---- with reset_after ------------------------------------------------------------------------ */

INLINE void forward_after(const step *s, gate_kind activation, gate_kind recurrent)
{
    const int64_t u = s->units;
    const float *bias = s->call->node->n_weight > 1 ? s->call->weight[1] : NULL;
    const vf one = vf_set(1);
    VECTOR_EACH(k, u, m, {
        vf x[3];
        EACH(g, 3) {
            x[g] = vf_load_some(m, s->z + g * u + k);
            if (bias) x[g] = vf_add(x[g], vf_load_some(m, bias + g * u + k));
        }
        const vf z = gate_value(recurrent, vf_add(x[0], vf_load_some(m, s->product + k)));
        const vf r = gate_value(recurrent, vf_add(x[1], vf_load_some(m, s->product + u + k)));
        const vf inner = vf_load_some(m, s->product + 2 * u + k);
        const vf hh = gate_value(activation, vf_fma(r, inner, x[2]));
        vf_store_some(m, s->of + k, z);
        vf_store_some(m, s->of + u + k, r);
        vf_store_some(m, s->of + 2 * u + k, hh);
        vf_store_some(m, s->of + 3 * u + k, inner);
        const vf kept = vf_mul(z, vf_load_some(m, s->before + k));
        vf_store_some(m, s->h + k, vf_fma(vf_sub(one, z), hh, kept));
    });
}

INLINE void backward_after(const step *s, gate_kind activation, gate_kind recurrent)
{
    const int64_t u = s->units;
    const vf one = vf_set(1);
    VECTOR_EACH(k, u, m, {
        const vf z = vf_load_some(m, s->of + k), r = vf_load_some(m, s->of + u + k);
        const vf hh = vf_load_some(m, s->of + 2 * u + k), dh = vf_load_some(m, s->dh + k);
        const vf inner = vf_load_some(m, s->of + 3 * u + k);
        const vf dz = vf_mul(dh, vf_sub(vf_load_some(m, s->before + k), hh));
        const vf dx = vf_mul(vf_mul(dh, vf_sub(one, z)), gate_slope(activation, hh));
        const vf dr = vf_mul(dx, inner);
        vf_store_some(m, s->of + k, vf_mul(dz, gate_slope(recurrent, z)));
        vf_store_some(m, s->of + u + k, vf_mul(dr, gate_slope(recurrent, r)));
        vf_store_some(m, s->of + 2 * u + k, vf_mul(dx, r));
        vf_store_some(m, s->of + 3 * u + k, dx);
        vf_store_some(m, s->dh + k, vf_mul(dh, z));
    });
}

/* ---- without --------------------------------------------------------------------------------- */

/* Both gates, and the state that one of them has reset. */
INLINE void reset_by(const step *s, gate_kind activation __attribute__((unused)),
                     gate_kind recurrent)
{
    const int64_t u = s->units;
    VECTOR_EACH(k, u, m, {
        vf x[2];
        EACH(g, 2) {
            x[g] = vf_load_some(m, s->z + g * u + k);
            x[g] = gate_value(recurrent, vf_add(x[g], vf_load_some(m, s->product + g * u + k)));
            vf_store_some(m, s->of + g * u + k, x[g]);
        }
        vf before = vf_load_some(m, s->before + k);
        if (s->drop) before = vf_mul(before, vf_load_some(m, s->drop + k));
        vf_store_some(m, s->of + 3 * u + k, vf_mul(x[1], before));
    });
}

static void reset(const step *s)
{
    BY_GATES(reset_by, s);
}

INLINE void forward_before(const step *s, gate_kind activation,
                           gate_kind recurrent __attribute__((unused)))
{
    const int64_t u = s->units;
    const vf one = vf_set(1);
    VECTOR_EACH(k, u, m, {
        const vf x = vf_load_some(m, s->z + 2 * u + k);
        const vf hh = gate_value(activation, vf_add(x, vf_load_some(m, s->product + 2 * u + k)));
        const vf z = vf_load_some(m, s->of + k);
        const vf kept = vf_mul(z, vf_load_some(m, s->before + k));
        vf_store_some(m, s->of + 2 * u + k, hh);
        vf_store_some(m, s->h + k, vf_fma(vf_sub(one, z), hh, kept));
    });
}

/* Gradients of the first and the last gate; that of the reset gate comes in reset_back. */
INLINE void backward_before(const step *s, gate_kind activation, gate_kind recurrent)
{
    const int64_t u = s->units;
    const vf one = vf_set(1);
    VECTOR_EACH(k, u, m, {
        const vf z = vf_load_some(m, s->of + k), hh = vf_load_some(m, s->of + 2 * u + k);
        const vf dh = vf_load_some(m, s->dh + k);
        const vf dz = vf_mul(dh, vf_sub(vf_load_some(m, s->before + k), hh));
        const vf dx = vf_mul(vf_mul(dh, vf_sub(one, z)), gate_slope(activation, hh));
        vf_store_some(m, s->of + k, vf_mul(dz, gate_slope(recurrent, z)));
        vf_store_some(m, s->of + 2 * u + k, dx);
        vf_store_some(m, s->dh + k, vf_mul(dh, z));
    });
}

INLINE void reset_back_by(const step *s, gate_kind activation __attribute__((unused)),
                          gate_kind recurrent)
{
    const int64_t u = s->units;
    VECTOR_EACH(k, u, m, {
        const vf r = vf_load_some(m, s->of + u + k), before = vf_load_some(m, s->before + k);
        const vf of_inner = vf_load_some(m, s->of_inner + k);
        const vf factor = s->drop ? vf_load_some(m, s->drop + k) : vf_set(1);
        const vf dr = vf_mul(vf_mul(of_inner, before), factor);
        const vf back = vf_mul(vf_mul(of_inner, r), factor);
        vf_store_some(m, s->of + u + k, vf_mul(dr, gate_slope(recurrent, r)));
        vf_store_some(m, s->dh + k, vf_add(vf_load_some(m, s->dh + k), back));
        if (s->ddrop)
            vf_store_some(m, s->ddrop + k,
                          vf_fma(vf_mul(of_inner, r), before, vf_load_some(m, s->ddrop + k)));
    });
}

static void reset_back(const step *s)
{
    BY_GATES(reset_back_by, s);
}

/* ---- both ------------------------------------------------------------------------------------ */

static inline bool resets_after(const step *s)
{
    return ((const keel_recurrent_args *)s->call->node->args)->reset_after;
}

static inline void step_forward(const step *s)
{
    if (resets_after(s))
        BY_GATES(forward_after, s);
    else
        BY_GATES(forward_before, s);
}

static inline void step_backward(const step *s)
{
    if (resets_after(s))
        BY_GATES(backward_after, s);
    else
        BY_GATES(backward_before, s);
}

/* Both rows of the bias are sums over all steps of what is saved; the third part of the first is
 * the fourth there. */
static void bias_weights(const keel_call *c)
{
    const int64_t u = c->node->weight[0].shape.dim[0];
    if (c->node->n_weight < 2 || !c->weight_grad[1]) return;
    float *db = c->weight_grad[1], *sums = c->scratch;
    memset(sums, 0, (size_t)(4 * u) * sizeof(float));
    add_bias(sums, c->saved[KEEL_SAVED_GATES], c->rows * c->node->in[0].shape.dim[0], 4 * u);
    for (int64_t k = 0; k < 6 * u; k++) {
        const float sum = sums[k < 2 * u ? k : k < 3 * u ? k + u : k - 3 * u];
        db[k] = c->weight_adds ? db[k] + sum : sum;
    }
}

RECURRENT_KERNEL(gru, reset, reset_back, bias_weights);
