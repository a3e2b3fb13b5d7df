/* Lamb (You et al. 2019), in the order of operations of Keras's update_step: the step u of Adam,
 * made as long as the weight it moves. m += (g - m) (1 - b1);  v += (g^2 - v) (1 - b2);
 * u = m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps);  w -= |w| / |u| lr u.
 * The first pass moves m and v and adds the squares of w and u, the second makes u again. */
#ifndef REAL
#include "optimizers/moments.h"
#include "optimizers/one_pass.h"

static const keel_field fields[] = {
    KEEL_OPTIMIZER_FIELDS(keel_moments, "0.001", "null"),
    KEEL_MOMENTS_FIELDS(keel_moments, "how much of the mean square is kept",
                        "added to the root of the mean square"),
    { 0 },
};

static int passes(const void *args)
{
    (void)args;
    return 2;
}

#define REAL_FILE "optimizers/lamb.c"
#include "ops/real.h"

const keel_optimizer keel_optimizer_lamb = {
    .type = {
        .name = "Lamb",
        .alias = "lamb",
        .module = "keras.optimizers",
        .help = "Adam's steps, each as long as the weight that it moves",
        .args_size = sizeof(keel_moments),
        .fields = fields,
    },
    .alike = { "momentum", "velocity" },
    .apply = REALS(apply),
    .passes = passes,
};

#else
typedef struct REAL_(lamb_t) {
    REAL rate, decay, scale, clip, one_less_beta_1, one_less_beta_2, left_1, left_2, epsilon;
} REAL_(lamb_t);

enum { REAL_(AT_ONCE) = 512 };

static inline REAL REAL_(of)(REAL m, REAL v, const REAL_(lamb_t) * f)
{
    return m / f->left_1 / (REAL_SQRT(v / f->left_2) + f->epsilon);
}

KEEL_ONE_PASS
static void REAL_(first)(int64_t n, REAL *restrict w, const REAL *restrict g, REAL *restrict m,
                         REAL *restrict v, const REAL_(lamb_t) * of, double *restrict sum)
{
    const REAL_(lamb_t) f = *of;
    REAL step[REAL_(AT_ONCE)];
    for (int64_t at = 0; at < n; at += REAL_(AT_ONCE)) {
        const int64_t end = n - at < REAL_(AT_ONCE) ? n - at : REAL_(AT_ONCE);
        for (int64_t k = 0, i = at; k < end; k++, i++) {
            const REAL gi = KEEL_CLAMP(g[i] * f.scale, f.clip);
            const REAL mi = m[i] + (gi - m[i]) * f.one_less_beta_1;
            const REAL vi = v[i] + (gi * gi - v[i]) * f.one_less_beta_2;
            m[i] = mi;
            v[i] = vi;
            w[i] = KEEL_DECAYED(w[i], f.decay, f.rate);
            step[k] = REAL_(of)(mi, vi, &f);
        }
        sum[0] += REAL_(keel_sum_squares)(w + at, end);
        sum[1] += REAL_(keel_sum_squares)(step, end);
    }
}

KEEL_ONE_PASS
static void REAL_(second)(int64_t n, REAL *restrict w, const REAL *restrict m,
                          const REAL *restrict v, const REAL_(lamb_t) * of, REAL length)
{
    const REAL_(lamb_t) f = *of;
    for (int64_t i = 0; i < n; i++) w[i] = w[i] - length * REAL_(of)(m[i], v[i], &f);
}

static void REAL_(apply)(const keel_update *u)
{
    const keel_moments *a = u->args;
    const REAL step = (REAL)u->iteration;
    const REAL_(lamb_t) f = {
        KEEL_MOVE_OF(u, a),
        .one_less_beta_1 = (REAL)(1 - a->beta_1),
        .one_less_beta_2 = (REAL)(1 - a->beta_2),
        .left_1 = 1 - REAL_POW((REAL)a->beta_1, step),
        .left_2 = 1 - REAL_POW((REAL)a->beta_2, step),
        .epsilon = (REAL)a->epsilon,
    };
    if (u->pass == 0) {
        u->sum[0] = u->sum[1] = 0;
        REAL_(first)(u->count, u->w, u->g, u->slot[0], u->slot[1], &f, u->sum);
        return;
    }
    const REAL of_w = (REAL)sqrt(u->whole->sum[0][0]), of_u = (REAL)sqrt(u->whole->sum[0][1]);
    const REAL ratio = of_w > 0 && of_u > 0 ? of_w / of_u : (REAL)1;
    REAL_(second)(u->count, u->w, u->slot[0], u->slot[1], &f, ratio * f.rate);
}
#endif
