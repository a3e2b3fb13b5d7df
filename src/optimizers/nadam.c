/* Nadam (Dozat 2016), in the order of operations of Keras's update_step. With
 * mu_t = b1 (1 - 0.96^t / 2) and P the product of mu_1 ... mu_t, which is kept as the number:
 * m += (g - m) (1 - b1);  v += (g^2 - v) (1 - b2);
 * w -= lr (mu_t+1 m / (1 - P mu_t+1) + (1 - mu_t) g / (1 - P)) / (sqrt(v / (1 - b2^t)) + eps). */
#ifndef REAL
#include "optimizers/moments.h"
#include "optimizers/one_pass.h"

static const keel_field fields[] = {
    KEEL_OPTIMIZER_FIELDS(keel_moments, "0.001", "null"),
    KEEL_MOMENTS_FIELDS(keel_moments, "how much of the mean square is kept",
                        "added to the root of the mean square"),
    { 0 },
};

#define REAL_FILE "optimizers/nadam.c"
#include "ops/real.h"

const keel_optimizer keel_optimizer_nadam = {
    .type = {
        .name = "Nadam",
        .alias = "nadam",
        .module = "keras.optimizers",
        .help = "Adam that looks ahead by the momentum",
        .args_size = sizeof(keel_moments),
        .fields = fields,
    },
    .alike = { "momentum", "velocity" },
    .apply = REALS(apply),
    .number = REALS(number),
    .first_number = 1,
};

#else
typedef struct REAL_(nadam_t) {
    REAL rate, decay, scale, clip, one_less_beta_1, one_less_beta_2, epsilon;
    REAL of_m, under_m, of_g, under_g, left;
} REAL_(nadam_t);

KEEL_ONE_PASS
static void REAL_(step)(int64_t n, REAL *restrict w, const REAL *restrict g, REAL *restrict m,
                        REAL *restrict v, const REAL_(nadam_t) * of)
{
    const REAL_(nadam_t) f = *of;
    for (int64_t i = 0; i < n; i++) {
        const REAL gi = KEEL_CLAMP(g[i] * f.scale, f.clip);
        const REAL mi = m[i] + (gi - m[i]) * f.one_less_beta_1;
        const REAL vi = v[i] + (gi * gi - v[i]) * f.one_less_beta_2;
        const REAL ahead = f.of_m * mi / f.under_m + f.of_g * gi / f.under_g;
        m[i] = mi;
        v[i] = vi;
        w[i] = KEEL_DECAYED(w[i], f.decay, f.rate) -
               ahead * f.rate / (REAL_SQRT(vi / f.left) + f.epsilon);
    }
}

static REAL REAL_(mu)(const keel_moments *a, int64_t step)
{
    const REAL half = (REAL)0.5 * REAL_POW((REAL)0.96, (REAL)step);
    return (REAL)a->beta_1 * (1 - half);
}

static double REAL_(number)(const void *args, int64_t iteration, double before)
{
    const keel_moments *a = args;
    const REAL half = (REAL)0.5 * REAL_POW((REAL)0.96, (REAL)iteration);
    return (REAL)before * (REAL)a->beta_1 * (1 - half);
}

static void REAL_(apply)(const keel_update *u)
{
    const keel_moments *a = u->args;
    const REAL product = (REAL)u->number, now = REAL_(mu)(a, u->iteration);
    const REAL next = REAL_(mu)(a, u->iteration + 1);
    const REAL_(nadam_t) f = {
        KEEL_MOVE_OF(u, a),
        .one_less_beta_1 = 1 - (REAL)a->beta_1,
        .one_less_beta_2 = 1 - (REAL)a->beta_2,
        .epsilon = (REAL)a->epsilon,
        .of_m = next,
        .under_m = 1 - product * next,
        .of_g = 1 - now,
        .under_g = 1 - product,
        .left = 1 - REAL_POW((REAL)a->beta_2, (REAL)u->iteration),
    };
    REAL_(step)(u->count, u->w, u->g, u->slot[0], u->slot[1], &f);
}
#endif
