/* Nadam (Dozat 2016), in the order of operations of Keras's update_step. With
 * mu_t = b1 (1 - 0.96^t / 2) and P the product of mu_1 ... mu_t, which is kept as the number:
 * m += (g - m) (1 - b1);  v += (g^2 - v) (1 - b2);
 * w -= lr (mu_t+1 m / (1 - P mu_t+1) + (1 - mu_t) g / (1 - P)) / (sqrt(v / (1 - b2^t)) + eps). */
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
    .move = REALS(move),
    .number = REALS(number),
    .first_number = 1,
};

#else
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

static void REAL_(move)(const keel_update *u, keel_device_move *out)
{
    const keel_moments *a = u->args;
    const REAL product = (REAL)u->number, now = REAL_(mu)(a, u->iteration);
    const REAL next = REAL_(mu)(a, u->iteration + 1);
    keel_move_begin(u, &a->common, REAL_IS_DOUBLE, out);
    out->rule = KEEL_RULE_NADAM;
    out->number.one_less_beta_1 = 1 - (REAL)a->beta_1;
    out->number.one_less_beta_2 = 1 - (REAL)a->beta_2;
    out->number.epsilon = (REAL)a->epsilon;
    out->number.of_m = next;
    out->number.under_m = 1 - product * next;
    out->number.of_g = 1 - now;
    out->number.under_g = 1 - product;
    out->number.left = 1 - REAL_POW((REAL)a->beta_2, (REAL)u->iteration);
}

static void REAL_(apply)(const keel_update *u)
{
    keel_device_move m;
    REAL_(move)(u, &m);
    keel_move(&m);
}
#endif
