/* RMSprop (Hinton 2012), in the order of operations of Keras's update_step:
 * v = rho v + (1 - rho) g^2;  step = lr g / sqrt(v + eps);   centered: v - a^2 + eps with
 * a = rho a + (1 - rho) g;    w -= step, or with momentum  m = mu m + step;  w -= m. */
#ifndef REAL
#include "optimizers/move.h"
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

/* In the order in which the rules take them. */
static keel_status slots(const void *args, const keel_weight_info *w, keel_slots *out)
{
    const args_t *a = args;
    const char *names[KEEL_SLOTS_MAX] = { "velocity" };
    int count = 1;
    (void)w;
    if (a->momentum > 0) names[count++] = "momentum";
    if (a->centered) names[count++] = "average_gradient";
    keel_slots_alike(out, count, names);
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
    .move = REALS(move),
};

#else
static void REAL_(move)(const keel_update *u, keel_device_move *out)
{
    static const keel_rule rules[2][2] = {
        { KEEL_RULE_RMSPROP, KEEL_RULE_RMSPROP_MOMENTUM },
        { KEEL_RULE_RMSPROP_CENTERED, KEEL_RULE_RMSPROP_CENTERED_MOMENTUM },
    };
    const args_t *a = u->args;
    keel_move_begin(u, &a->common, REAL_IS_DOUBLE, out);
    out->rule = rules[a->centered][a->momentum > 0];
    out->number.rho = (REAL)a->rho;
    out->number.one_less_rho = (REAL)(1 - a->rho);
    out->number.momentum = (REAL)a->momentum;
    out->number.epsilon = (REAL)a->epsilon;
}

static void REAL_(apply)(const keel_update *u)
{
    keel_device_move m;
    REAL_(move)(u, &m);
    keel_move(&m);
}
#endif
