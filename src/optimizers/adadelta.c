/* Adadelta (Zeiler 2012), in the order of operations of Keras's update_step:
 * a = rho a + (1 - rho) g^2;  d = sqrt(x + eps) g / sqrt(a + eps);  x = rho x + (1 - rho) d^2;
 * w -= lr d. */
#ifndef REAL
#include "optimizers/one_pass.h"

typedef struct args_t {
    keel_optimizer_common common;
    double rho, epsilon;
} args_t;

static const keel_field fields[] = {
    KEEL_OPTIMIZER_FIELDS(args_t, "0.001", "null"),
    KEEL_FLOAT(args_t, rho, "0.95", 0, 1, "how much of the means is kept"),
    KEEL_FLOAT(args_t, epsilon, "1e-7", 0, 1e30, "added to the mean squares"),
    { 0 },
};

#define REAL_FILE "optimizers/adadelta.c"
#include "ops/real.h"

const keel_optimizer keel_optimizer_adadelta = {
    .type = {
        .name = "Adadelta",
        .alias = "adadelta",
        .module = "keras.optimizers",
        .help = "steps whose size follows from the steps before them",
        .args_size = sizeof(args_t),
        .fields = fields,
    },
    .alike = { "accumulated_grad", "accumulated_delta_var" },
    .apply = REALS(apply),
};

#else
typedef struct REAL_(delta_t) {
    REAL rate, decay, scale, clip, rho, one_less_rho, epsilon;
} REAL_(delta_t);

KEEL_ONE_PASS
static void REAL_(step)(int64_t n, REAL *restrict w, const REAL *restrict g, REAL *restrict a,
                        REAL *restrict x, const REAL_(delta_t) * of)
{
    const REAL_(delta_t) f = *of;
    for (int64_t i = 0; i < n; i++) {
        const REAL gi = KEEL_CLAMP(g[i] * f.scale, f.clip);
        const REAL ai = f.rho * a[i] + f.one_less_rho * (gi * gi);
        const REAL d = -(REAL_SQRT(x[i] + f.epsilon) * gi / REAL_SQRT(ai + f.epsilon));
        a[i] = ai;
        x[i] = f.rho * x[i] + f.one_less_rho * (d * d);
        w[i] = KEEL_DECAYED(w[i], f.decay, f.rate) + f.rate * d;
    }
}

static void REAL_(apply)(const keel_update *u)
{
    const args_t *a = u->args;
    const REAL_(delta_t) f = {
        KEEL_MOVE_OF(u, a),
        .rho = (REAL)a->rho,
        .one_less_rho = (REAL)(1 - a->rho),
        .epsilon = (REAL)a->epsilon,
    };
    REAL_(step)(u->count, u->w, u->g, u->slot[0], u->slot[1], &f);
}
#endif
