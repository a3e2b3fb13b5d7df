/* Stochastic gradient descent, in the order of operations of Keras's update_step:
 * w -= w wd lr;   then  w -= g lr,   or with momentum
 * m = m mu - g lr;      w += m,      or with nesterov  w += m mu - g lr. */
#ifndef REAL
#include "optimizers/optimizer.h"
#include "optimizers/one_pass.h"

typedef struct args_t {
    keel_optimizer_common common;
    double momentum;
    bool nesterov;
} args_t;

static const keel_field fields[] = {
    KEEL_OPTIMIZER_FIELDS(args_t, "0.01", "null"),
    KEEL_FLOAT(args_t, momentum, "0.0", 0, 1, "how much of the last move is kept"),
    KEEL_BOOL(args_t, nesterov, "false", "look ahead by the momentum"),
    { 0 },
};

static keel_status slots(const void *args, const keel_weight_info *w, keel_slots *out)
{
    static const char *const names[] = { "momentum" };
    (void)w;
    return keel_slots_alike(out, ((const args_t *)args)->momentum == 0 ? 0 : 1, names);
}

static double plain_momentum(const void *args)
{
    const args_t *a = args;
    return a->nesterov || keel_decay(&a->common) != 0 ? 0 : a->momentum;
}

static bool rests(const void *args)
{
    const args_t *a = args;
    return a->momentum == 0 && keel_decay(&a->common) == 0;
}

#define REAL_FILE "optimizers/sgd.c"
#include "ops/real.h"

const keel_optimizer keel_optimizer_sgd = {
    .type = {
        .name = "SGD",
        .module = "keras.optimizers",
        .help = "gradient descent, with momentum where asked",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .slots = slots,
    .plain_momentum = plain_momentum,
    .rests = rests,
    .apply = REALS(apply),
};

#else
KEEL_ONE_PASS
static void REAL_(plain)(int64_t n, REAL *restrict w, const REAL *restrict g, REAL rate, REAL decay,
                         REAL scale, REAL clip)
{
    for (int64_t i = 0; i < n; i++) {
        const REAL gi = KEEL_CLAMP(g[i] * scale, clip);
        w[i] = KEEL_DECAYED(w[i], decay, rate) - gi * rate;
    }
}

KEEL_ONE_PASS
static void REAL_(plain_momentum)(int64_t n, REAL *restrict w, const REAL *restrict g,
                                  REAL *restrict m, REAL rate, REAL decay, REAL scale, REAL clip,
                                  REAL momentum)
{
    for (int64_t i = 0; i < n; i++) {
        const REAL gi = KEEL_CLAMP(g[i] * scale, clip);
        m[i] = m[i] * momentum - gi * rate;
        w[i] = KEEL_DECAYED(w[i], decay, rate) + m[i];
    }
}

/* The same without decay and clipping, which most trainings do not use: this loop is limited by its
 * instructions. */
KEEL_ONE_PASS
static void REAL_(plain_momentum_only)(int64_t n, REAL *restrict w, const REAL *restrict g,
                                       REAL *restrict m, REAL rate, REAL scale, REAL momentum)
{
    for (int64_t i = 0; i < n; i++) {
        m[i] = m[i] * momentum - g[i] * scale * rate;
        w[i] = w[i] + m[i];
    }
}

KEEL_ONE_PASS
static void REAL_(nesterov)(int64_t n, REAL *restrict w, const REAL *restrict g, REAL *restrict m,
                            REAL rate, REAL decay, REAL scale, REAL clip, REAL momentum)
{
    for (int64_t i = 0; i < n; i++) {
        const REAL gi = KEEL_CLAMP(g[i] * scale, clip);
        m[i] = m[i] * momentum - gi * rate;
        w[i] = KEEL_DECAYED(w[i], decay, rate) + (m[i] * momentum - gi * rate);
    }
}

static void REAL_(apply)(const keel_update *u)
{
    const args_t *a = u->args;
    const REAL rate = (REAL)u->learning_rate, momentum = (REAL)a->momentum;
    const REAL decay = (REAL)keel_decay(&a->common), scale = (REAL)u->scale, clip = (REAL)u->clip;
    if (a->momentum == 0)
        REAL_(plain)(u->count, u->w, u->g, rate, decay, scale, clip);
    else if (a->nesterov)
        REAL_(nesterov)(u->count, u->w, u->g, u->slot[0], rate, decay, scale, clip, momentum);
    else if (decay == 0 && isinf(clip))
        REAL_(plain_momentum_only)(u->count, u->w, u->g, u->slot[0], rate, scale, momentum);
    else
        REAL_(plain_momentum)(u->count, u->w, u->g, u->slot[0], rate, decay, scale, clip, momentum);
}
#endif
