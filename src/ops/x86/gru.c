/* GRU in float32, where the reset gate acts on the product: see _recurrent.h and ops/gru.c. */
#include "ops/x86/_recurrent.h"

static inline void step_forward(const step *s)
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
        const vf z = logistic(vf_add(x[0], vf_load_some(m, s->product + k)));
        const vf r = logistic(vf_add(x[1], vf_load_some(m, s->product + u + k)));
        const vf inner = vf_load_some(m, s->product + 2 * u + k);
        const vf hh = tangent(vf_fma(r, inner, x[2]));
        vf_store_some(m, s->of + k, z);
        vf_store_some(m, s->of + u + k, r);
        vf_store_some(m, s->of + 2 * u + k, hh);
        vf_store_some(m, s->of + 3 * u + k, inner);
        const vf kept = vf_mul(z, vf_load_some(m, s->before + k));
        vf_store_some(m, s->h + k, vf_fma(vf_sub(one, z), hh, kept));
    });
}

static inline void step_backward(const step *s)
{
    const int64_t u = s->units;
    const vf one = vf_set(1);
    VECTOR_EACH(k, u, m, {
        const vf z = vf_load_some(m, s->of + k), r = vf_load_some(m, s->of + u + k);
        const vf hh = vf_load_some(m, s->of + 2 * u + k), dh = vf_load_some(m, s->dh + k);
        const vf inner = vf_load_some(m, s->of + 3 * u + k);
        const vf dz = vf_mul(dh, vf_sub(vf_load_some(m, s->before + k), hh));
        const vf dx = vf_mul(vf_mul(dh, vf_sub(one, z)), vf_sub(one, vf_mul(hh, hh)));
        const vf dr = vf_mul(dx, inner);
        vf_store_some(m, s->of + k, vf_mul(dz, vf_mul(z, vf_sub(one, z))));
        vf_store_some(m, s->of + u + k, vf_mul(dr, vf_mul(r, vf_sub(one, r))));
        vf_store_some(m, s->of + 2 * u + k, vf_mul(dx, r));
        vf_store_some(m, s->of + 3 * u + k, dx);
        vf_store_some(m, s->dh + k, vf_mul(dh, z));
    });
}

/* Both rows of the bias are sums over all steps of what is saved; the third part of the first is
 * the fourth there. */
static void weights(const keel_call *c)
{
    const int64_t u = c->node->weight[0].shape.dim[0];
    run_weights(c, &keel_cell_gru);
    if (c->node->n_weight < 2 || !c->weight_grad[1]) return;
    float *db = c->weight_grad[1], *sums = c->scratch;
    memset(sums, 0, (size_t)(4 * u) * sizeof(float));
    add_bias(sums, c->saved[KEEL_SAVED_GATES], c->rows * c->node->in[0].shape.dim[0], 4 * u);
    for (int64_t k = 0; k < 6 * u; k++) {
        const float sum = sums[k < 2 * u ? k : k < 3 * u ? k + u : k - 3 * u];
        db[k] = c->weight_adds ? db[k] + sum : sum;
    }
}

RECURRENT_KERNEL(gru);
