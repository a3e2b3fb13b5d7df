/* Lion (Chen et al. 2023): w -= lr sign(m b1 + g (1 - b1));  m = m b2 + g (1 - b2). */
#ifndef REAL
#include "optimizers/one_pass.h"

typedef struct args_t {
    keel_optimizer_common common;
    double beta_1, beta_2;
} args_t;

static const keel_field fields[] = {
    KEEL_OPTIMIZER_FIELDS(args_t, "0.001", "null"),
    KEEL_FLOAT(args_t, beta_1, "0.9", 1e-30, 1, "how much of the mean the step keeps"),
    KEEL_FLOAT(args_t, beta_2, "0.99", 0, 1, "how much of the mean gradient is kept"),
    { 0 },
};

#define REAL_FILE "optimizers/lion.c"
#include "ops/real.h"

const keel_optimizer keel_optimizer_lion = {
    .type = {
        .name = "Lion",
        .alias = "lion",
        .module = "keras.optimizers",
        .help = "steps of one size, by the sign of the mean gradient",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .alike = { "momentum" },
    .apply = REALS(apply),
};

#else
typedef struct REAL_(lion_t) {
    REAL rate, decay, scale, clip, beta_1, one_less_beta_1, beta_2, one_less_beta_2;
} REAL_(lion_t);

KEEL_ONE_PASS
static void REAL_(step)(int64_t n, REAL *restrict w, const REAL *restrict g, REAL *restrict m,
                        const REAL_(lion_t) * of)
{
    const REAL_(lion_t) f = *of;
    for (int64_t i = 0; i < n; i++) {
        const REAL gi = KEEL_CLAMP(g[i] * f.scale, f.clip);
        const REAL way = m[i] * f.beta_1 + gi * f.one_less_beta_1;
        const REAL sign = way > 0 ? (REAL)1 : way < 0 ? (REAL)-1 : (REAL)0;
        w[i] = KEEL_DECAYED(w[i], f.decay, f.rate) - f.rate * sign;
        m[i] = m[i] * f.beta_2 + gi * f.one_less_beta_2;
    }
}

static void REAL_(apply)(const keel_update *u)
{
    const args_t *a = u->args;
    const REAL_(lion_t) f = {
        KEEL_MOVE_OF(u, a),
        .beta_1 = (REAL)a->beta_1,
        .one_less_beta_1 = 1 - (REAL)a->beta_1,
        .beta_2 = (REAL)a->beta_2,
        .one_less_beta_2 = 1 - (REAL)a->beta_2,
    };
    REAL_(step)(u->count, u->w, u->g, u->slot[0], &f);
}
#endif
