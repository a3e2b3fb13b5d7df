/* Lamb (You et al. 2019), in the order of operations of Keras's update_step: the step u of Adam,
 * made as long as the weight it moves. m += (g - m) (1 - b1);  v += (g^2 - v) (1 - b2);
 * u = m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps);  w -= |w| / |u| lr u.
 * The first pass moves m and v and adds the squares of w and u, the second makes u again. */
#ifndef REAL
#include "optimizers/moments.h"
#include "optimizers/move.h"
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
    .move = REALS(move),
    .passes = passes,
};

#else
static REAL REAL_(length)(const keel_update *u)
{
    const REAL of_w = (REAL)sqrt(u->whole->sum[0][0]), of_u = (REAL)sqrt(u->whole->sum[0][1]);
    const REAL ratio = of_w > 0 && of_u > 0 ? of_w / of_u : (REAL)1;
    return ratio * (REAL)u->learning_rate;
}

static void REAL_(move)(const keel_update *u, keel_device_move *out)
{
    const keel_moments *a = u->args;
    const REAL step = (REAL)u->iteration;
    keel_move_begin(u, &a->common, REAL_IS_DOUBLE, out);
    if (u->pass == KEEL_MOVE_LAST) {
        out->rule = KEEL_RULE_PLAIN;
        out->number = (keel_rule_numbers){ .rate = REAL_(length)(u), .scale = 1, .clip = INFINITY };
        return;
    }
    out->rule = u->pass == KEEL_MOVE_STEP ? KEEL_RULE_LAMB_STEP : KEEL_RULE_LAMB;
    out->number.one_less_beta_1 = (REAL)(1 - a->beta_1);
    out->number.one_less_beta_2 = (REAL)(1 - a->beta_2);
    out->number.left = 1 - REAL_POW((REAL)a->beta_1, step);
    out->number.left_2 = 1 - REAL_POW((REAL)a->beta_2, step);
    out->number.epsilon = (REAL)a->epsilon;
}

/* A part of a step, which is nowhere kept. */
enum { REAL_(AT_ONCE) = 2 * KEEL_MEASURE_LANES };

static void REAL_(make_step)(const keel_device_move *m, int64_t at, int64_t n, REAL *to)
{
    keel_device_move part = *m;
    part.rule = KEEL_RULE_LAMB_STEP;
    part.count = n;
    part.w = to;
    part.g = (const REAL *)m->w + at;
    for (int k = 0; k < 2; k++) part.slot[k] = (REAL *)m->slot[k] + at;
    keel_move(&part);
}

static double REAL_(squares_of_step)(const keel_device_move *m)
{
    double lanes[KEEL_MEASURE_LANES] = { 0 };
    REAL step[REAL_(AT_ONCE)];
    for (int64_t at = 0; at < m->count; at += REAL_(AT_ONCE)) {
        const int64_t n = m->count - at < REAL_(AT_ONCE) ? m->count - at : REAL_(AT_ONCE);
        REAL_(make_step)(m, at, n, step);
        keel_add_squares(m->real, step, n, lanes);
    }
    return keel_fold_lanes(lanes, KEEL_MEASURE_LANES);
}

KEEL_ONE_PASS
static void REAL_(second)(int64_t n, REAL *restrict w, const REAL *restrict step, REAL length)
{
    for (int64_t i = 0; i < n; i++) w[i] = w[i] - length * step[i];
}

static void REAL_(apply)(const keel_update *u)
{
    keel_device_move m;
    keel_update first = *u;
    first.pass = 0;
    REAL_(move)(&first, &m);
    if (u->pass == 0) {
        keel_move(&m);
        u->sum[0] = keel_squares(m.real, m.w, m.count);
        u->sum[1] = REAL_(squares_of_step)(&m);
        return;
    }
    const REAL length = REAL_(length)(u);
    REAL step[REAL_(AT_ONCE)];
    for (int64_t at = 0; at < m.count; at += REAL_(AT_ONCE)) {
        const int64_t n = m.count - at < REAL_(AT_ONCE) ? m.count - at : REAL_(AT_ONCE);
        REAL_(make_step)(&m, at, n, step);
        REAL_(second)(n, (REAL *)m.w + at, step, length);
    }
}
#endif
