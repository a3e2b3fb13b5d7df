/* RMSprop (Hinton 2012), in the order of operations of Keras's update_step:
 * v = rho v + (1 - rho) g^2;  step = lr g / sqrt(v + eps);   centered: v - a^2 + eps with
 * a = rho a + (1 - rho) g;    w -= step, or with momentum  m = mu m + step;  w -= m. */
#ifndef REAL
#include "optimizers/one_pass.h"

typedef struct args_t {
    keel_optimizer_common common;
    double rho, momentum, epsilon;
    bool centered;
} args_t;

static const keel_field fields[] = {
    KEEL_OPTIMIZER_FIELDS(args_t, "0.001", "null"),
    KEEL_FLOAT(args_t, rho, "0.9", 0, 1, "how much of the mean square is kept"),
    KEEL_FLOAT(args_t, momentum, "0.0", 0, 1, "how much of the last move is kept"),
    KEEL_FLOAT(args_t, epsilon, "1e-7", 0, 1e30, "added to the mean square"),
    KEEL_BOOL(args_t, centered, "false", "divide by the variance of the gradient"),
    { 0 },
};

/* The index of a slot that not every configuration has. */
static int momentum_slot(const args_t *a)
{
    return a->momentum > 0 ? 1 : -1;
}

static int mean_slot(const args_t *a)
{
    return a->centered ? 1 + (a->momentum > 0) : -1;
}

static keel_status slots(const void *args, const keel_weight_info *w, keel_slots *out)
{
    const args_t *a = args;
    const char *names[KEEL_SLOTS_MAX] = { "velocity" };
    (void)w;
    if (momentum_slot(a) > 0) names[momentum_slot(a)] = "momentum";
    if (mean_slot(a) > 0) names[mean_slot(a)] = "average_gradient";
    keel_slots_alike(out, 1 + (a->momentum > 0) + a->centered, names);
    for (int k = 1; k < out->count; k++) out->at[k].group = k;
    return KEEL_OK;
}

#define REAL_FILE "optimizers/rmsprop.c"
#include "ops/real.h"

const keel_optimizer keel_optimizer_rmsprop = {
    .type = {
        .name = "RMSprop",
        .alias = "rmsprop",
        .module = "keras.optimizers",
        .help = "steps of the gradient over the root of its mean square",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .slots = slots,
    .apply = REALS(apply),
};

#else
typedef struct REAL_(rms_t) {
    REAL rate, decay, scale, clip, rho, one_less_rho, momentum, epsilon;
} REAL_(rms_t);

/* With the mean gradient of a centered optimizer, or without. */
static inline void REAL_(step)(int64_t n, REAL *restrict w, const REAL *restrict g,
                               REAL *restrict v, REAL *restrict mean, REAL *restrict m,
                               const REAL_(rms_t) f)
{
    for (int64_t i = 0; i < n; i++) {
        const REAL gi = KEEL_CLAMP(g[i] * f.scale, f.clip);
        const REAL vi = f.rho * v[i] + f.one_less_rho * (gi * gi);
        REAL under = vi + f.epsilon;
        v[i] = vi;
        if (mean) {
            const REAL ai = f.rho * mean[i] + f.one_less_rho * gi;
            mean[i] = ai;
            under = vi - ai * ai + f.epsilon;
        }
        REAL move = f.rate * gi / REAL_SQRT(under);
        if (m) m[i] = move = f.momentum * m[i] + move;
        w[i] = KEEL_DECAYED(w[i], f.decay, f.rate) - move;
    }
}

/* Each combination has a loop of its own. */
KEEL_ONE_PASS
static void REAL_(plain)(int64_t n, REAL *restrict w, const REAL *restrict g, REAL *restrict v,
                         const REAL_(rms_t) * f)
{
    REAL_(step)(n, w, g, v, NULL, NULL, *f);
}

KEEL_ONE_PASS
static void REAL_(moved)(int64_t n, REAL *restrict w, const REAL *restrict g, REAL *restrict v,
                         REAL *restrict m, const REAL_(rms_t) * f)
{
    REAL_(step)(n, w, g, v, NULL, m, *f);
}

KEEL_ONE_PASS
static void REAL_(centered)(int64_t n, REAL *restrict w, const REAL *restrict g, REAL *restrict v,
                            REAL *restrict mean, const REAL_(rms_t) * f)
{
    REAL_(step)(n, w, g, v, mean, NULL, *f);
}

KEEL_ONE_PASS
static void REAL_(centered_moved)(int64_t n, REAL *restrict w, const REAL *restrict g,
                                  REAL *restrict v, REAL *restrict mean, REAL *restrict m,
                                  const REAL_(rms_t) * f)
{
    REAL_(step)(n, w, g, v, mean, m, *f);
}

static void REAL_(apply)(const keel_update *u)
{
    const args_t *a = u->args;
    const REAL_(rms_t) f = {
        KEEL_MOVE_OF(u, a),
        .rho = (REAL)a->rho,
        .one_less_rho = (REAL)(1 - a->rho),
        .momentum = (REAL)a->momentum,
        .epsilon = (REAL)a->epsilon,
    };
    REAL *m = momentum_slot(a) > 0 ? u->slot[momentum_slot(a)] : NULL;
    REAL *mean = mean_slot(a) > 0 ? u->slot[mean_slot(a)] : NULL;
    if (m && mean)
        REAL_(centered_moved)(u->count, u->w, u->g, u->slot[0], mean, m, &f);
    else if (mean)
        REAL_(centered)(u->count, u->w, u->g, u->slot[0], mean, &f);
    else if (m)
        REAL_(moved)(u->count, u->w, u->g, u->slot[0], m, &f);
    else
        REAL_(plain)(u->count, u->w, u->g, u->slot[0], &f);
}
#endif
