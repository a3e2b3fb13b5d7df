/* Adamax (Kingma and Ba 2014, section 7), in the order of operations of Keras's update_step:
 * m += (g - m) (1 - b1);  u = max(b2 u, |g|);  w -= lr m / ((1 - b1^t) (u + eps)). */
#ifndef REAL
#include "optimizers/moments.h"
#include "optimizers/one_pass.h"

static const keel_field fields[] = {
    KEEL_OPTIMIZER_FIELDS(keel_moments, "0.001", "null"),
    KEEL_MOMENTS_FIELDS(keel_moments, "how much of the largest gradient is kept",
                        "added to the largest gradient"),
    { 0 },
};

#define REAL_FILE "optimizers/adamax.c"
#include "ops/real.h"

const keel_optimizer keel_optimizer_adamax = {
    .type = {
        .name = "Adamax",
        .alias = "adamax",
        .module = "keras.optimizers",
        .help = "Adam with the largest gradient in place of the mean square",
        .args_size = sizeof(keel_moments),
        .fields = fields,
    },
    .alike = { "momentum", "norm" },
    .apply = REALS(apply),
};

#else
typedef struct REAL_(adamax_t) {
    REAL rate, decay, scale, clip, one_less_beta_1, beta_2, left, epsilon;
} REAL_(adamax_t);

KEEL_ONE_PASS
static void REAL_(step)(int64_t n, REAL *restrict w, const REAL *restrict g, REAL *restrict m,
                        REAL *restrict most, const REAL_(adamax_t) * of)
{
    const REAL_(adamax_t) f = *of;
    for (int64_t i = 0; i < n; i++) {
        const REAL gi = KEEL_CLAMP(g[i] * f.scale, f.clip);
        const REAL mi = m[i] + (gi - m[i]) * f.one_less_beta_1;
        const REAL size = gi < 0 ? -gi : gi, kept = f.beta_2 * most[i];
        const REAL ui = kept > size ? kept : size;
        m[i] = mi;
        most[i] = ui;
        w[i] = KEEL_DECAYED(w[i], f.decay, f.rate) - f.rate * mi / (f.left * (ui + f.epsilon));
    }
}

static void REAL_(apply)(const keel_update *u)
{
    const keel_moments *a = u->args;
    const REAL_(adamax_t) f = {
        KEEL_MOVE_OF(u, a),          .one_less_beta_1 = (REAL)(1 - a->beta_1),
        .beta_2 = (REAL)a->beta_2,   .left = 1 - REAL_POW((REAL)a->beta_1, (REAL)u->iteration),
        .epsilon = (REAL)a->epsilon,
    };
    REAL_(step)(u->count, u->w, u->g, u->slot[0], u->slot[1], &f);
}
#endif
