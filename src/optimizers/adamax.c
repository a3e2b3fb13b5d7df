/* Adamax (Kingma and Ba 2014, section 7), in the order of operations of Keras's update_step:
 * m += (g - m) (1 - b1);  u = max(b2 u, |g|);  w -= lr m / ((1 - b1^t) (u + eps)). */
#ifndef REAL
#include "optimizers/moments.h"
#include "optimizers/move.h"
#include "optimizers/one_pass.h"

static const keel_field fields[] = {
    KEEL_OPTIMIZER_FIELDS(keel_moments, "0.001", "null"),
    KEEL_MOMENTS_FIELDS(keel_moments, "how much of the largest gradient is kept",
                        "added to the largest gradient"),
    { 0 },
};

#define REAL_FILE "optimizers/adamax.c"
#include "ops/real.h"

const keel_optimizer keel_optimizer_adamax = {
    .type = {
        .name = "Adamax",
        .alias = "adamax",
        .module = "keras.optimizers",
        .help = "Adam with the largest gradient in place of the mean square",
        .args_size = sizeof(keel_moments),
        .fields = fields,
    },
    .alike = { "momentum", "norm" },
    .apply = REALS(apply),
    .move = REALS(move),
};

#else
static void REAL_(move)(const keel_update *u, keel_device_move *out)
{
    const keel_moments *a = u->args;
    keel_move_begin(u, &a->common, REAL_IS_DOUBLE, out);
    out->rule = KEEL_RULE_ADAMAX;
    out->number.one_less_beta_1 = (REAL)(1 - a->beta_1);
    out->number.beta_2 = (REAL)a->beta_2;
    out->number.left = 1 - REAL_POW((REAL)a->beta_1, (REAL)u->iteration);
    out->number.epsilon = (REAL)a->epsilon;
}

static void REAL_(apply)(const keel_update *u)
{
    keel_device_move m;
    REAL_(move)(u, &m);
    keel_move(&m);
}
#endif
