/* Adam (Kingma and Ba 2014) and AdamW (Loshchilov and Hutter 2017), which in Keras differ only in
 * their default weight decay. The order of operations, and the type they run in, are those of
 * Keras's update_step; alpha in float32 matters: 1 - beta_2^t loses five digits at t = 1.
 * w -= w wd lr;  m += (g - m) (1 - b1);  v += (g^2 - v) (1 - b2);  w -= m alpha / (sqrt(v) + eps),
 * alpha = lr sqrt(1 - b2^t) / (1 - b1^t); amsgrad: with the largest v so far in place of v. */
#ifndef REAL
#include "optimizers/adam_impl.h"
#include "optimizers/one_pass.h"

keel_status keel_adam_slots(const void *args, const keel_weight_info *w, keel_slots *out)
{
    static const char *const names[] = { "momentum", "velocity", "velocity_hat" };
    (void)w;
    KEEL_TRY(keel_slots_alike(out, ((const keel_adam *)args)->amsgrad ? 3 : 2, names));
    out->at[2].group = 1;
    return KEEL_OK;
}

#define REAL_FILE "optimizers/adam_impl.c"
#include "ops/real.h"

#else
typedef struct REAL_(adam_t) {
    REAL rate, decay, scale, clip, alpha, one_less_beta_1, one_less_beta_2, epsilon;
} REAL_(adam_t);

KEEL_ONE_PASS
static void REAL_(plain)(int64_t n, REAL *restrict w, const REAL *restrict g, REAL *restrict m,
                         REAL *restrict v, const REAL_(adam_t) * f)
{
    const REAL_(adam_t) a = *f;
    for (int64_t i = 0; i < n; i++) {
        const REAL gi = KEEL_CLAMP(g[i] * a.scale, a.clip);
        const REAL mi = m[i] + (gi - m[i]) * a.one_less_beta_1;
        const REAL vi = v[i] + (gi * gi - v[i]) * a.one_less_beta_2;
        m[i] = mi;
        v[i] = vi;
        w[i] = KEEL_DECAYED(w[i], a.decay, a.rate) - mi * a.alpha / (REAL_SQRT(vi) + a.epsilon);
    }
}

KEEL_ONE_PASS
static void REAL_(amsgrad)(int64_t n, REAL *restrict w, const REAL *restrict g, REAL *restrict m,
                           REAL *restrict v, REAL *restrict hat, const REAL_(adam_t) * f)
{
    const REAL_(adam_t) a = *f;
    for (int64_t i = 0; i < n; i++) {
        const REAL gi = KEEL_CLAMP(g[i] * a.scale, a.clip);
        const REAL mi = m[i] + (gi - m[i]) * a.one_less_beta_1;
        const REAL vi = v[i] + (gi * gi - v[i]) * a.one_less_beta_2;
        const REAL hi = hat[i] > vi ? hat[i] : vi;
        m[i] = mi;
        v[i] = vi;
        hat[i] = hi;
        w[i] = KEEL_DECAYED(w[i], a.decay, a.rate) - mi * a.alpha / (REAL_SQRT(hi) + a.epsilon);
    }
}

void REAL_(keel_adam_apply)(const keel_update *u)
{
    const keel_adam *a = u->args;
    const REAL step = (REAL)u->iteration, rate = (REAL)u->learning_rate;
    const REAL left_1 = 1 - REAL_POW((REAL)a->beta_1, step);
    const REAL left_2 = 1 - REAL_POW((REAL)a->beta_2, step);
    const REAL root = REAL_SQRT(left_2);
    const REAL_(adam_t) f = {
        KEEL_MOVE_OF(u, a),
        .alpha = rate * root / left_1,
        .one_less_beta_1 = (REAL)(1 - a->beta_1),
        .one_less_beta_2 = (REAL)(1 - a->beta_2),
        .epsilon = (REAL)a->epsilon,
    };
    if (a->amsgrad)
        REAL_(amsgrad)(u->count, u->w, u->g, u->slot[0], u->slot[1], u->slot[2], &f);
    else
        REAL_(plain)(u->count, u->w, u->g, u->slot[0], u->slot[1], &f);
}
#endif
