/* FTRL-Proximal (McMahan et al. 2013), in the order of operations of Keras's update_step. With
 * p = -learning_rate_power, a the sum of squares and z the linear term:
 * z += g + 2 shrinkage w - ((a + g^2)^p - a^p) / lr w;  a += g^2;
 * w = (clip(z, l1) - z) / (a^p / lr + 2 l2 + beta / lr).
 * Where g^2 is small beside a, or p near 0, the difference of powers has few digits in float32.
 * With p of 0.014 to 0.5, weights after ten steps are 2e-5 to 2e-4 off those of float64, those of
 * Keras 3e-5 to 2e-4, and the two are as far apart. */
#ifndef REAL
#include "optimizers/move.h"
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

static bool by_root(const void *args)
{
    return ((const args_t *)args)->learning_rate_power == -0.5;
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
    .move = REALS(move),
    .moves_there = by_root,
};

#else
static void REAL_(move)(const keel_update *u, keel_device_move *out)
{
    const args_t *a = u->args;
    const REAL rate = (REAL)u->learning_rate;
    const REAL l2 = (REAL)a->l2_regularization_strength + (REAL)a->beta / (2 * rate);
    keel_move_begin(u, &a->common, REAL_IS_DOUBLE, out);
    out->rule = KEEL_RULE_FTRL;
    out->number.l1 = (REAL)a->l1_regularization_strength;
    out->number.twice_l2 = 2 * l2;
    out->number.twice_shrinkage = (REAL)(2 * a->l2_shrinkage_regularization_strength);
}

/* The rule with powers in place of roots. */
static void REAL_(by_power)(const keel_device_move *m, REAL power)
{
    REAL *w = m->w, *a = m->slot[0], *z = m->slot[1];
    const REAL *g = m->g;
    const REAL rate = (REAL)m->number.rate, decay = (REAL)m->number.decay;
    const REAL scale = (REAL)m->number.scale, clip = (REAL)m->number.clip;
    const REAL l1 = (REAL)m->number.l1, twice_l2 = (REAL)m->number.twice_l2;
    const REAL twice_shrinkage = (REAL)m->number.twice_shrinkage;
    for (int64_t i = 0; i < m->count; i++) {
        const REAL gi = KEEL_CLAMP(g[i] * scale, clip);
        const REAL wi = KEEL_DECAYED(w[i], decay, rate), sum = a[i] + gi * gi;
        const REAL after = REAL_POW(sum, power), before = REAL_POW(a[i], power);
        const REAL zi = z[i] + ((gi + twice_shrinkage * wi) - (after - before) / rate * wi);
        w[i] = (KEEL_CLAMP(zi, l1) - zi) / (after / rate + twice_l2);
        z[i] = zi;
        a[i] = sum;
    }
}

static void REAL_(apply)(const keel_update *u)
{
    keel_device_move m;
    REAL_(move)(u, &m);
    if (by_root(u->args))
        keel_move(&m);
    else
        REAL_(by_power)(&m, (REAL) - ((const args_t *)u->args)->learning_rate_power);
}
#endif
