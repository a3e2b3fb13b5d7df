/* Adamax (Kingma and Ba 2014, section 7), in the order of operations of Keras's update_step:
 * m += (g - m) (1 - b1);  u = max(b2 u, |g|);  w -= lr m / ((1 - b1^t) (u + eps)). */
#ifndef REAL
#include "optimizers/one_pass.h"

typedef struct args_t {
    keel_optimizer_common common;
    double beta_1, beta_2, epsilon;
} args_t;

static const keel_field fields[] = {
    KEEL_OPTIMIZER_FIELDS(args_t, "0.001", "null"),
    KEEL_FLOAT(args_t, beta_1, "0.9", 0, 1, "how much of the mean gradient is kept"),
    KEEL_FLOAT(args_t, beta_2, "0.999", 0, 1, "how much of the largest gradient is kept"),
    KEEL_FLOAT(args_t, epsilon, "1e-7", 0, 1e30, "added to the largest gradient"),
    { 0 },
};

static keel_status slots(const void *args, const keel_weight_info *w, keel_slots *out)
{
    static const char *const names[] = { "momentum", "norm" };
    (void)args;
    (void)w;
    keel_slots_alike(out, 2, names);
    return KEEL_OK;
}

#define REAL_FILE "optimizers/adamax.c"
#include "ops/real.h"

const keel_optimizer keel_optimizer_adamax = {
    .type = {
        .name = "Adamax",
        .alias = "adamax",
        .module = "keras.optimizers",
        .help = "Adam with the largest gradient in place of the mean square",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .slots = slots,
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
        w[i] = w[i] - w[i] * f.decay * f.rate - f.rate * mi / (f.left * (ui + f.epsilon));
    }
}

static void REAL_(apply)(const keel_update *u)
{
    const args_t *a = u->args;
    const REAL_(adamax_t) f = {
        .rate = (REAL)u->learning_rate,
        .decay = (REAL)keel_decay(&a->common),
        .scale = (REAL)u->scale,
        .clip = (REAL)u->clip,
        .one_less_beta_1 = (REAL)(1 - a->beta_1),
        .beta_2 = (REAL)a->beta_2,
        .left = 1 - REAL_POW((REAL)a->beta_1, (REAL)u->iteration),
        .epsilon = (REAL)a->epsilon,
    };
    REAL_(step)(u->count, u->w, u->g, u->slot[0], u->slot[1], &f);
}
#endif
