/* FTRL-Proximal (McMahan et al. 2013), in the order of operations of Keras's update_step. With
 * p = -learning_rate_power, a the sum of squares and z the linear term:
 * z += g + 2 shrinkage w - ((a + g^2)^p - a^p) / lr w;  a += g^2;
 * w = (clip(z, l1) - z) / (a^p / lr + 2 l2 + beta / lr).
 * Where g^2 is small beside a, or p near 0, the difference of powers has few digits in float32.
 * With p of 0.014 to 0.5, weights after ten steps are 2e-5 to 2e-4 off those of float64, those of
 * Keras 3e-5 to 2e-4, and the two are as far apart. */
#ifndef REAL
#include "optimizers/one_pass.h"

typedef struct args_t {
    keel_optimizer_common common;
    double learning_rate_power, initial_accumulator_value;
    double l1_regularization_strength, l2_regularization_strength;
    double l2_shrinkage_regularization_strength, beta;
} args_t;

static const keel_field fields[] = {
    KEEL_OPTIMIZER_FIELDS(args_t, "0.001", "null"),
    KEEL_FLOAT(args_t, learning_rate_power, "-0.5", -1e30, 0, "how fast steps become smaller"),
    KEEL_FLOAT(args_t, initial_accumulator_value, "0.1", 0, 1e30, "what the sum begins with"),
    KEEL_FLOAT(args_t, l1_regularization_strength, "0.0", 0, 1e30, "pulls weights to 0"),
    KEEL_FLOAT(args_t, l2_regularization_strength, "0.0", 0, 1e30, "keeps weights small"),
    KEEL_FLOAT(args_t, l2_shrinkage_regularization_strength, "0.0", 0, 1e30,
               "l2 of the gradient alone"),
    KEEL_FLOAT(args_t, beta, "0.0", 0, 1e30, "of the paper: l2 over the learning rate"),
    { 0 },
};

static keel_status slots(const void *args, const keel_weight_info *w, keel_slots *out)
{
    static const char *const names[] = { "accumulator", "linear" };
    (void)w;
    keel_slots_alike(out, 2, names);
    out->at[0].first = ((const args_t *)args)->initial_accumulator_value;
    return KEEL_OK;
}

#define REAL_FILE "optimizers/ftrl.c"
#include "ops/real.h"

const keel_optimizer keel_optimizer_ftrl = {
    .type = {
        .name = "Ftrl",
        .alias = "ftrl",
        .module = "keras.optimizers",
        .help = "follow the regularized leader: many weights become exactly 0",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .slots = slots,
    .apply = REALS(apply),
};

#else
typedef struct REAL_(ftrl_t) {
    REAL rate, decay, scale, clip, power, l1, twice_l2, twice_shrinkage;
} REAL_(ftrl_t);

static inline void REAL_(step)(int64_t n, REAL *restrict w, const REAL *restrict g,
                               REAL *restrict a, REAL *restrict z, const REAL_(ftrl_t) f, bool root)
{
    for (int64_t i = 0; i < n; i++) {
        const REAL gi = KEEL_CLAMP(g[i] * f.scale, f.clip);
        const REAL wi = KEEL_DECAYED(w[i], f.decay, f.rate), sum = a[i] + gi * gi;
        const REAL after = root ? REAL_SQRT(sum) : REAL_POW(sum, f.power);
        const REAL before = root ? REAL_SQRT(a[i]) : REAL_POW(a[i], f.power);
        const REAL zi = z[i] + ((gi + f.twice_shrinkage * wi) - (after - before) / f.rate * wi);
        w[i] = (KEEL_CLAMP(zi, f.l1) - zi) / (after / f.rate + f.twice_l2);
        z[i] = zi;
        a[i] = sum;
    }
}

KEEL_ONE_PASS
static void REAL_(by_root)(int64_t n, REAL *restrict w, const REAL *restrict g, REAL *restrict a,
                           REAL *restrict z, const REAL_(ftrl_t) * f)
{
    REAL_(step)(n, w, g, a, z, *f, true);
}

static void REAL_(apply)(const keel_update *u)
{
    const args_t *a = u->args;
    const REAL rate = (REAL)u->learning_rate;
    const REAL l2 = (REAL)a->l2_regularization_strength + (REAL)a->beta / (2 * rate);
    const REAL_(ftrl_t) f = {
        KEEL_MOVE_OF(u, a),
        .power = (REAL)-a->learning_rate_power,
        .l1 = (REAL)a->l1_regularization_strength,
        .twice_l2 = 2 * l2,
        .twice_shrinkage = (REAL)(2 * a->l2_shrinkage_regularization_strength),
    };
    if (a->learning_rate_power == -0.5)
        REAL_(by_root)(u->count, u->w, u->g, u->slot[0], u->slot[1], &f);
    else
        REAL_(step)(u->count, u->w, u->g, u->slot[0], u->slot[1], f, false);
}
#endif
